#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>
#include <map>
#include <string>

#include "models/training/memory/memory.h"
#include "models/training/memory/memory_remedy.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/step_plan.h"
#include "models/training/run/layout_case.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {
using parallel::PipelineSchedule;
using parallel::Sharding;

StepRun step_of(const LayoutCase& of) {
  CollectiveCosts costs;
  return run_step(layout_training(of), {StepKind::uniform, 1024, 1}, costs);
}

TEST_CASE("layout step: parts are means over stages and add up to the step") {
  for (const LayoutCase& of :
       {LayoutCase{.dp = 4}, LayoutCase{.tp = 5, .dp = 2}, LayoutCase{.pp = 4, .micro_batches = 16},
        LayoutCase{.tp = 5, .dp = 2, .pp = 2}, LayoutCase{.dp = 8, .sharding = Sharding::weights},
        LayoutCase{.cp = 2, .dp = 2}, LayoutCase{.pp = 4, .chunks = 3, .micro_batches = 8}}) {
    const StepMetrics step = step_of(of).metrics;
    INFO("tp " << of.tp << " cp " << of.cp << " dp " << of.dp << " pp " << of.pp);
    const Duration parts =
        step.forward + step.backward + step.optimizer + step.exposed_comm + step.bubble;
    CHECK(parts.s() == Approx(step.step_time.s()).epsilon(1e-9));
    CHECK(step.step_time_low < step.step_time);
    CHECK(step.step_time_high > step.step_time);
    CHECK((step.bubble > Duration()) == (of.pp > 1));
    CHECK(step.backward > step.forward);
  }
}

// DeepSpeed-Ulysses exchanges queries, keys, values and context over c ranks: 4 (c - 1) / c tokens
// / c x hidden x 2 bytes per block and pass. Megatron's ring sends keys and values c - 1 times, and
// twice that backward.
TEST_CASE("layout step: heads exchanged for tokens, and a ring") {
  const auto plan_of = [](FrameworkName framework) {
    return plan_step(layout_training({.cp = 5, .framework = framework}),
                     {StepKind::uniform, 1000, 1})
        .pipeline.value();
  };
  const PipelinePlan heads = plan_of(FrameworkName::deepspeed),
                     ring = plan_of(FrameworkName::megatron);
  const double part = 2 * 200. * 1600;
  CHECK(heads.context_rounds == 0);
  CHECK_FALSE(heads.keys_values.has_value());
  CHECK(heads.queries_exchange->op == Op::all_to_all);
  CHECK(heads.queries_exchange->bytes.value() == part);
  CHECK(heads.keys_exchange->bytes.value() == part);
  CHECK(ring.context_rounds == 4);
  CHECK_FALSE(ring.queries_exchange.has_value());
  CHECK(ring.keys_values->bytes.value() == 2 * part);
}

// PyTorch gathers keys and values of all heads once, and passes their gradients around in fp32. A
// traced program waits for each of these; an eager one computes meanwhile with the data that it
// has.
TEST_CASE("layout step: keys and values are gathered, and a traced program waits for them") {
  const auto training_with = [](Fusion fusion) {
    TrainingPlan training = layout_training({.cp = 5, .framework = FrameworkName::torchtitan});
    training.parallelism->framework.fusion = fusion;
    return training;
  };
  const auto plan_of = [&](Fusion fusion) {
    return plan_step(training_with(fusion), {StepKind::uniform, 1000, 1}).pipeline.value();
  };
  const PipelinePlan compiled = plan_of(Fusion::compiled);
  CHECK(compiled.block.ring == Ring::traced);
  CHECK(plan_of(Fusion::eager).block.ring == Ring::eager);
  const double part = 2 * 200. * 1600;
  CHECK(compiled.keys_values->op == Op::all_gather);
  CHECK(compiled.keys_values->bytes.value() == 5 * 2 * part);
  CHECK(compiled.keys_gradients->op == Op::send_recv);
  CHECK(compiled.keys_gradients->bytes.value() == 2 * 2 * part);
  CollectiveCosts costs;
  const auto exposed = [&](Fusion fusion) {
    return run_step(training_with(fusion), {StepKind::uniform, 1000, 1}, costs)
        .metrics.exposed_comm;
  };
  CHECK(exposed(Fusion::compiled) > exposed(Fusion::eager));
}

// Activations of x = 2 s b h bytes in each direction and block. Megatron-LM gathers its two inputs
// again for their weight gradients; DTensor keeps them. If the block is recomputed, DTensor reuses
// the recomputed inputs, and stops before it scatters the last product's output: 4 + 4 + 6 calls
// against 4 + 3 + 4.
TEST_CASE("layout step: DTensor gathers no input twice, and copies gathered inputs") {
  const auto training_with = [](FrameworkName framework, Repeated repeated) {
    TrainingPlan training = layout_training(
        {.tp = 5, .micro_batches = 1, .framework = framework, .sequence_parallel = true});
    training.parallelism->repeated = repeated;
    return training;
  };
  CollectiveCosts costs;
  const auto run = [&](const TrainingPlan& training) {
    return run_step(training, {StepKind::uniform, 1000, 1}, costs).metrics;
  };
  const auto sent = [&](FrameworkName framework, Repeated repeated) {
    return run(training_with(framework, repeated)).wire_bytes_per_gpu.value();
  };
  const double one = 48 * 4. / 5 * 2 * 1000 * 1600;
  CHECK(sent(FrameworkName::megatron, Repeated::nothing) -
            sent(FrameworkName::torchtitan, Repeated::nothing) ==
        Approx(2 * one).epsilon(1e-6));
  CHECK(sent(FrameworkName::megatron, Repeated::block) -
            sent(FrameworkName::torchtitan, Repeated::until_last_product) ==
        Approx(3 * one).epsilon(1e-6));
  // DTensor adds up the input gradients of several products before the scatter, so the scatter
  // overlaps no product.
  const auto exposed = [&](FrameworkName framework) {
    TrainingPlan training = training_with(framework, Repeated::nothing);
    training.parallelism->framework.tensor_overlap = TensorOverlap::all;
    return run(training).exposed_comm;
  };
  CHECK(exposed(FrameworkName::torchtitan) > exposed(FrameworkName::megatron));
}

// In a pipeline with little communication, all times and the waits between stages scale with the
// error of its kernels: at an error of w, each segment takes exp(-+w) times as long.
TEST_CASE("layout step: a pipeline is replayed at either end of its interval") {
  const StepRun step = step_of({.pp = 4, .micro_batches = 16});
  const double width = rates_width(layout_training({}).device->rates->held_out).log;
  int stretches = 0;
  for (std::size_t i = 0; i < step.plan.ops.size(); ++i) {
    if (!std::holds_alternative<StageWork>(step.plan.ops[i].work)) continue;
    const Price& price = step.prices[i];
    if (price.time == Duration()) continue;
    ++stretches;
    CHECK(price.compute.low.s() == Approx(price.time.s() * std::exp(-width)).epsilon(0.02));
    CHECK(price.compute.high.s() == Approx(price.time.s() * std::exp(width)).epsilon(0.02));
    CHECK(price.wires.low <= price.time);
    CHECK(price.wires.high >= price.time);
  }
  CHECK(stretches >= 8);
  // Approximate, because the optimizer's kernels have an error of their own.
  CHECK(step.metrics.step_time_low.s() ==
        Approx(step.metrics.step_time.s() * std::exp(-width)).epsilon(0.05));
}

// A pipeline of p equal stages is idle for p - 1 of m + p - 1 slots. Embedding and head prolong the
// end stages, so the bubble is at least that of equal stages.
TEST_CASE("layout step: the bubble shrinks with micro batches and with interleaving") {
  const auto share = [](const LayoutCase& of) {
    const StepMetrics step = step_of(of).metrics;
    return step.bubble / (step.forward + step.backward + step.bubble);
  };
  const double few = share({.pp = 4, .micro_batches = 8}),
               many = share({.pp = 4, .micro_batches = 64});
  CHECK(few > 3.0 / 11);
  CHECK(few < 3.0 / 11 + 0.15);
  CHECK(many > 3.0 / 67);
  CHECK(many < few);
  CHECK(share({.pp = 4, .chunks = 4, .micro_batches = 8}) < few);
}

// Ring bytes of a rank: all_reduce 2 (n - 1) / n, reduce_scatter and all_gather (n - 1) / n of the
// data.
TEST_CASE(
    "layout step: gradients of a data-parallel group are summed once, in the framework's bytes") {
  const double parameters_of_model = static_cast<double>(parameters(*layout_training({}).model));
  const double plain = step_of({.dp = 4}).metrics.wire_bytes_per_gpu.value();
  CHECK(plain == Approx(2 * 3 / 4. * 4 * parameters_of_model).epsilon(0.001));
  // fp32 gradients are scattered, 16-bit weights gathered.
  const double sharded =
      step_of({.dp = 4, .sharding = Sharding::optimizer}).metrics.wire_bytes_per_gpu.value();
  CHECK(sharded == Approx(3 / 4. * (4 + 2) * parameters_of_model).epsilon(0.001));
}

// Apex's distributed LAMB on two nodes of 8: one all_reduce over all ranks, the norms of weights
// and updates per tensor, and a gather of the weights within the node. Textbook sharding instead
// scatters within the node and sums an eighth between the nodes. Saving one collective outweighs
// the larger number of bytes.
TEST_CASE("layout step: distributed LAMB sums over all ranks and shares its update in the node") {
  LayoutCase of{.dp = 16, .micro_batches = 1, .sharding = Sharding::optimizer};
  TrainingPlan training = layout_training(of);
  training.recipe.optimizer = OptimizerType::lamb;
  training.parallelism->shard_ranks = 8;
  training.parallelism->framework.overlaps_gradients = false;
  training.parallelism->framework.overlaps_weights = false;
  training.parallelism->framework.fp32_gradients = false;
  CollectiveCosts costs;
  const auto bytes = [&] {
    return run_step(training, {StepKind::uniform, 1024, 1}, costs)
        .metrics.wire_bytes_per_gpu.value();
  };
  const double model = 2.0 * static_cast<double>(parameters(*training.model));
  // Reduce-scatter and all-gather within the node (8 GPUs), all-reduce of one eighth between the
  // two nodes.
  CHECK(bytes() == Approx((2 * 7 / 8. + 1 / 8.) * model).epsilon(0.001));
  training.parallelism->full_all_reduce = true;
  CHECK(bytes() == Approx((2 * 15 / 16. + 7 / 8.) * model).epsilon(0.001));
  const StepPlan plan = plan_step(training, {StepKind::uniform, 1024, 1});
  const auto norms = std::find_if(plan.ops.begin(), plan.ops.end(), [](const PlanOp& op) {
    return op.name == "all_reduce norms of tensors";
  });
  REQUIRE(norms != plan.ops.end());
  const Call& call = std::get<Call>(norms->work);
  CHECK(call.group.ranks == 8);
  CHECK(call.bytes.value() == 2 * 4 * static_cast<double>(optimized_tensor_count(*training.model)));
  // Colossal-AI's distributed LAMB instead sums one number for each tensor, one after another.
  training.recipe.optimizer = OptimizerType::distributed_lamb;
  std::int64_t together = 0, apart = 0;
  for (const PlanOp& op : plan_step(training, {StepKind::uniform, 1024, 1}).ops) {
    if (op.name == "all_reduce norms of tensors") ++together;
    if (op.name == "all_reduce statistics of tensors") apart += op.times;
  }
  CHECK(together == 0);
  CHECK(apart == static_cast<std::int64_t>(optimized_tensor_count(*training.model)));
}

// LARS keeps one moment, and LAMB two.
TEST_CASE("layout step: LARS has less memory and traffic than LAMB") {
  TrainingPlan training = layout_training({.dp = 8});
  const auto with = [&](OptimizerType type) {
    training.recipe.optimizer = type;
    CollectiveCosts costs;
    return run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.optimizer;
  };
  const Duration of_lamb = with(OptimizerType::lamb);
  const Bytes held = forecast_memory(training).peak;
  CHECK(with(OptimizerType::lars) < of_lamb);
  CHECK((held - forecast_memory(training).peak).value() ==
        Approx(4.0 * static_cast<double>(parameters(*training.model))).epsilon(0.001));
}

// Sums within one copy of the model, of tied weights and of norms, are independent of exchanges.
TEST_CASE("layout step: sums within a copy of the model are also made in compressed steps") {
  TrainingPlan training = layout_training({.tp = 5,
                                           .dp = 2,
                                           .pp = 2,
                                           .framework = FrameworkName::deepspeed,
                                           .sequence_parallel = true});
  training.recipe.optimizer = OptimizerType::zero_one_adam;
  for (const StepKind kind :
       {StepKind::warmup, StepKind::round, StepKind::compression, StepKind::silent}) {
    INFO(name_of(kind));  // each count of 2 is the first stage and the last one
    const std::vector<PlanOp> ops = plan_step(training, {kind, 1024, 1}).ops;
    CHECK(std::ranges::count(ops, "all_reduce tied embedding", &PlanOp::name) == 2);
    CHECK(std::ranges::count(ops, "all_reduce gradients of norms", &PlanOp::name) == 2);
  }
}

TEST_CASE("layout step: both ends of a pipeline sum tied weights at the same time") {
  const StepRun step = step_of({.dp = 2, .pp = 4, .micro_batches = 8});
  std::vector<SimTime> begins;
  for (std::size_t i = 0; i < step.plan.ops.size(); ++i)
    if (step.plan.ops[i].name == "all_reduce tied embedding")
      begins.push_back(step.execution.timeline.spans[i].begin);
  REQUIRE(begins.size() == 2);
  CHECK(begins[0] == begins[1]);
}

// Rajbhandari et al. 2019, section 7: in every micro batch, weights are gathered twice and
// gradients scattered once.
TEST_CASE("layout step: sharded weights move three times the model per micro batch") {
  LayoutCase of{.dp = 8,
                .micro_batches = 3,
                .sharding = Sharding::weights,
                .framework = FrameworkName::deepspeed};
  TrainingPlan training = layout_training(of);
  Framework& framework = training.parallelism->framework;
  framework.reuse_elements = framework.live_elements = 1;  // no block is kept for the backward pass
  CollectiveCosts costs;
  const double per_micro_batch =
      run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.wire_bytes_per_gpu.value() /
      3;
  const double model = 2.0 * static_cast<double>(parameters(*training.model));
  CHECK(per_micro_batch == Approx(3 * 7 / 8. * model).epsilon(0.1));
}

// Shoeybi et al. 2019: four all_reduces of 2 s b h bytes per block and micro batch. With sequence
// parallelism, the same bytes are sent by gathers and scatters, and inputs are gathered again.
TEST_CASE("layout step: tensor parallelism sends its activations") {
  const double x = 2.0 * 1024 * 1600;
  const double blocks = 48 * 8;
  const double sums = step_of({.tp = 5}).metrics.wire_bytes_per_gpu.value();
  CHECK(sums == Approx(blocks * 4 * 2 * 4 / 5. * x).epsilon(0.02));
  const double parts =
      step_of({.tp = 5, .sequence_parallel = true}).metrics.wire_bytes_per_gpu.value();
  CHECK(parts == Approx(blocks * (8 + 2) * 4 / 5. * x).epsilon(0.02));
}

TEST_CASE("layout step: ranks of a stage compute a share of the model") {
  const Duration whole = step_of({}).metrics.forward;
  CHECK(step_of({.tp = 5}).metrics.forward.s() < whole.s() / 2.5);
  CHECK(step_of({.pp = 4}).metrics.forward.s() == Approx(whole.s() / 4).epsilon(0.01));
  CHECK(step_of({.cp = 2}).metrics.forward.s() < whole.s() * 0.75);
}

TEST_CASE(
    "layout step: overlap shortens the step, and memory is that of the stage that needs most") {
  LayoutCase of{.dp = 32, .micro_batches = 2};
  TrainingPlan training = layout_training(of);
  CollectiveCosts costs;
  const Duration hidden = run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.step_time;
  training.parallelism->framework.overlaps_gradients = false;
  CHECK(run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.step_time > hidden);
  const MemoryForecast one = forecast_memory(layout_training({}));
  const MemoryForecast four = forecast_memory(layout_training({.pp = 4}));
  CHECK(four.peak < one.peak);
}

// Time that sharding weights adds to computation on Azure's A100s
// (models/training/plan/framework.h).
TEST_CASE("layout step: DeepSpeed's sharded weights overlap nothing, FSDP's overlap the blocks") {
  const auto exposed = [](FrameworkName framework, std::int64_t micro) {
    return step_of({.dp = 16,
                    .micro = micro,
                    .micro_batches = 1,
                    .sharding = Sharding::weights,
                    .framework = framework})
        .metrics.exposed_comm.s();
  };
  CHECK(exposed(FrameworkName::deepspeed, 8) == Approx(exposed(FrameworkName::deepspeed, 1)));
  CHECK(exposed(FrameworkName::torchtitan, 8) < 0.85 * exposed(FrameworkName::torchtitan, 1));
}

// Wang et al. 2023, table 1: of 3 P elements sent between nodes, int8 weights in the forward pass
// leave 0.5 P, the second copy keeps backward gathers within nodes, and int4 gradients leave 0.25
// P.
TEST_CASE(
    "layout step: ZeRO++ sends a quarter of the bytes between nodes, and keeps another copy") {
  TrainingPlan training = layout_training({.dp = 32,
                                           .micro_batches = 1,
                                           .sharding = Sharding::weights,
                                           .framework = FrameworkName::deepspeed});
  Framework& framework = training.parallelism->framework;
  framework.reuse_elements = framework.live_elements = 1;  // no block is kept for the backward pass
  const auto network = [&] {
    CollectiveCosts costs;
    return run_step(training, {StepKind::uniform, 1024, 1}, costs)
        .metrics.network_bytes_per_node.value();
  };
  const double plain = network();
  Parallelism& how = *training.parallelism;
  how.quantized_weights = true;
  CHECK(network() == Approx(plain * 2 / 3).epsilon(0.05));
  how.secondary_ranks = 8;
  CHECK(network() == Approx(plain / 2).epsilon(0.05));
  how.quantized_gradients = true;
  const double in_int4 = network();
  CHECK(in_int4 == Approx(plain / 4).epsilon(0.1));
  // int8 weights are a sixth of the uncompressed bytes; int8 gradients add twice the bytes of int4
  // gradients.
  how.quantized_by = {Exchange::Kind::loco_int8};
  CHECK(network() - in_int4 == Approx(in_int4 - plain / 6).epsilon(0.05));
  how.quantized_by = {Exchange::Kind::qgz};
  const MemoryForecast memory = forecast_memory(training);
  const auto copy = std::find_if(memory.parts.begin(), memory.parts.end(),
                                 [](const auto& part) { return part.first == "second_copy"; });
  REQUIRE(copy != memory.parts.end());
  CHECK(copy->second.value() == Approx(2 * static_cast<double>(parameters(*training.model)) / 8));
}

// NCCL's blocks occupy multiprocessors, which slows the kernels that overlap the reduction.
TEST_CASE("layout step: a hidden reduction still slows overlapping kernels") {
  const StepMetrics alone = step_of({.dp = 1}).metrics, many = step_of({.dp = 16}).metrics;
  CHECK(many.backward > alone.backward);
  CHECK(many.backward.s() < alone.backward.s() * 1.3);
}

TEST_CASE("layout step: unrolling every rank gives the same step as folding by symmetry") {
  for (const LayoutCase& of :
       {LayoutCase{.tp = 5, .dp = 3, .micro_batches = 2}, LayoutCase{.dp = 3, .pp = 3},
        LayoutCase{.dp = 12, .micro_batches = 2, .sharding = Sharding::weights},
        LayoutCase{.cp = 3, .dp = 5, .micro_batches = 2},
        // Combined axes; a model's ranks and its replicas on nodes of 8; several chunks.
        LayoutCase{.tp = 5, .pp = 3, .micro_batches = 5},
        LayoutCase{.tp = 5, .dp = 2, .pp = 2, .micro_batches = 3, .sequence_parallel = true},
        LayoutCase{.cp = 2, .dp = 3, .pp = 2, .micro_batches = 3},
        LayoutCase{.pp = 3, .chunks = 2, .micro_batches = 6},
        LayoutCase{.tp = 5, .dp = 3, .pp = 2, .chunks = 3, .micro_batches = 4},
        LayoutCase{
            .dp = 3, .pp = 4, .chunks = 4, .micro_batches = 8, .sharding = Sharding::optimizer}}) {
    INFO("tp " << of.tp << " cp " << of.cp << " dp " << of.dp << " pp " << of.pp << " x "
               << of.chunks);
    TrainingPlan training = layout_training(of);
    CollectiveCosts folded, unrolled;
    const DistinctStep step{StepKind::uniform, 1024, 1};
    const Duration one = run_step(training, step, folded).metrics.step_time;
    training.expand = true;
    const Duration all = run_step(training, step, unrolled).metrics.step_time;
    CHECK(all.s() == Approx(one.s()).epsilon(1e-6));
  }
}

TEST_CASE("layout step: 175B on 16,384 GPUs in 1,536 micro batches is forecast within 0.2 s") {
  TrainingPlan training = layout_training({.tp = 8,
                                           .dp = 128,
                                           .pp = 16,
                                           .chunks = 6,
                                           .micro_batches = 1536,
                                           .sharding = Sharding::optimizer,
                                           .sequence_parallel = true});
  training.model = std::make_shared<const ModelShape>(load_model("gpt3-175b", {}));
  training.seq_len = 2048;
  CollectiveCosts costs;
  const std::clock_t start = std::clock();
  const StepMetrics step = run_step(training, {StepKind::uniform, 2048, 1}, costs).metrics;
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(seconds < 0.2);
  CHECK(step.bubble / step.step_time < 0.15);  // embedding and head prolong the end stages
}

TEST_CASE("layout step: each remedy for memory was forecast to fit") {
  TrainingPlan training = layout_training({.dp = 16, .micro_batches = 2});
  training.model = std::make_shared<const ModelShape>(load_model("llama2-13b", {}));
  training.seq_len = 4096;
  REQUIRE_FALSE(forecast_memory(training).fits);
  std::string all;
  for (const std::string& remedy : memory_remedies(training)) all += remedy + "; ";
  INFO(all);
  CHECK_THAT(all, Catch::Matchers::Contains("--zero-stage "));
  CHECK_THAT(all, Catch::Matchers::Contains("--pp "));
  const auto at = all.find("--tp ");
  REQUIRE(at != std::string::npos);
  const int tp = std::stoi(all.substr(at + 5));
  CHECK(tp > 1);
  training.parallelism->layout.tp = tp;
  training.parallelism->layout.dp = 16 / tp;
  training.batch.gas *= tp;
  CHECK(forecast_memory(training).fits);
  CHECK_THAT(all, Catch::Matchers::Contains(to_text(forecast_memory(training).peak)));
}

}  // namespace
}  // namespace lambcast
