#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "models/shape/adapters.h"
#include "models/training/memory/memory.h"
#include "models/training/price/beside_collectives.h"
#include "models/training/price/pass_price.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {
using parallel::Sharding;

// With sequence parallelism, Megatron-LM sums the gradients of tensors that every tensor rank holds
// whole, in fp32: norms and the biases after a block's two scatters, positions and the last norm.
TEST_CASE("layout step: gradients that sequence parallelism leaves partial are summed") {
  const StepPlan plan = plan_step(layout_training({.tp = 5, .dp = 2, .sequence_parallel = true}),
                                  {StepKind::uniform, 1024, 1});
  const auto norms = std::find_if(plan.ops.begin(), plan.ops.end(), [](const PlanOp& op) {
    return op.name == "all_reduce gradients of norms";
  });
  REQUIRE(norms != plan.ops.end());
  const double whole = 48 * (2 * 2 + 2) * 1600. + 1024 * 1600. + 2 * 1600;
  CHECK(std::get<Call>(norms->work).group.ranks == 5);
  CHECK(std::get<Call>(norms->work).bytes.value() == 4 * whole);
}

// Ranks with pieces of a tensor sum its statistics: the ranks of a tensor group, and with sharded
// states also the ranks of a shard group.
TEST_CASE("layout step: statistics of tensors are summed over the ranks that divide a tensor") {
  const auto groups = [](Sharding sharding) {
    TrainingPlan training = layout_training({.tp = 5, .dp = 4, .sharding = sharding});
    training.recipe.optimizer = OptimizerType::adafactor;
    std::vector<int> ranks;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 1024, 1}).ops)
      if (op.name.starts_with("all_reduce statistics of "))
        ranks.push_back(std::get<Call>(op.work).group.ranks);
    return ranks;
  };
  CHECK(groups(Sharding::none) == std::vector<int>{5});
  CHECK(groups(Sharding::optimizer) == std::vector<int>{4, 5});
}

// Norms and biases, which every tensor rank holds whole, count once for any number of ranks.
TEST_CASE("layout step: the work per tensor is the same for any number of ranks") {
  const auto seen = [](int tp, OptimizerType type, int pp = 1) {
    TrainingPlan training =
        layout_training({.tp = tp, .dp = 2, .pp = pp, .sharding = Sharding::optimizer});
    if (type == OptimizerType::galore_adamw8bit) training.parallelism->sharding = Sharding::none;
    training.model = std::make_shared<const ModelShape>(load_model("bert-large", {}));
    training.seq_len = 128;
    training.recipe.optimizer = type;
    std::int64_t sums = 0;
    double decomposing = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::refresh, 128, 1}).ops) {
      if (op.name == "all_reduce statistics of tensors") sums += op.times;
      const auto* product = std::get_if<ProductWork>(&op.work);
      if (product != nullptr && op.name == "products of the optimizer")
        decomposing = std::max(decomposing, product->flops);
    }
    return std::pair(sums, decomposing);
  };
  const double decomposing = seen(1, OptimizerType::galore_adamw8bit).second;
  CHECK(decomposing > 1e12);
  for (const int tp : {1, 2, 4, 8, 16}) {
    INFO(tp);
    CHECK(seen(tp, OptimizerType::distributed_lamb).first == 398);
    CHECK(seen(tp, OptimizerType::galore_adamw8bit).second == Approx(decomposing));
  }
  // A pipeline stage has a share of the tensors; the head's copy of the embedding adds a few.
  const auto staged = static_cast<double>(seen(2, OptimizerType::distributed_lamb, 2).first);
  CHECK(staged >= 398);
  CHECK(staged < 398 * 1.12);
}

// DeepSpeed converts the gradients that it scatters (runtime/zero/stage3.py, __avg_scatter_grads).
TEST_CASE("layout step: fp32 gradients take twice the bytes at ZeRO's stages 2 and 3 too") {
  for (const Sharding sharding : {Sharding::gradients, Sharding::weights}) {
    TrainingPlan training =
        layout_training({.dp = 8, .sharding = sharding, .framework = FrameworkName::deepspeed});
    training.recipe.precision.weights = DataType::bf16;
    const auto reduced = [&] {
      const StepPlan plan = plan_step(training, {StepKind::uniform, 1024, 1});
      double bytes = 0;
      for (const auto* calls :
           {&plan.pipeline->gradients_reduce, &plan.pipeline->outer_gradients_reduce})
        for (const Call& call : *calls) bytes += call.bytes.value();
      return bytes;
    };
    const double half = reduced();
    CHECK(half > 0);
    training.recipe.precision.gradients = DataType::fp32;
    CHECK(reduced() == 2 * half);
    training.recipe.precision.gradients = DataType::fp16;
    CHECK(reduced() == half);
  }
}

// The branches of a parallel block share the gathers before them and the scatters after them: 2
// instead of 4 calls forward and 3 instead of 6 backward (without sequence parallelism 2 and 2
// sums), in each of 48 blocks.
TEST_CASE("layout step: a parallel block has half the collectives of tensor parallelism") {
  CollectiveCosts costs;
  for (const bool sequence_parallel : {false, true}) {
    TrainingPlan training =
        layout_training({.tp = 5, .micro_batches = 1, .sequence_parallel = sequence_parallel});
    const auto calls = [&] {
      return run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.num_collectives;
    };
    const std::int64_t serial = calls();
    ModelShape parallel = *training.model;
    parallel.parallel_block = true;
    training.model = std::make_shared<const ModelShape>(std::move(parallel));
    CHECK(serial - calls() == 48 * (sequence_parallel ? 2 + 3 : 1 + 1));
  }
}

// End stages sum tied gradients; inputs are gathered in the format of their product.
TEST_CASE(
    "layout step: end stages sum tied gradients; inputs are gathered in their product's format") {
  TrainingPlan training = layout_training({.tp = 5, .pp = 2, .sequence_parallel = true});
  const auto plan = [&] { return plan_step(training, {StepKind::uniform, 1024, 1}); };
  int sums = 0;
  for (const PlanOp& op : plan().ops)
    if (op.name == "all_reduce tied embedding") {
      ++sums;
      CHECK(std::get<Call>(op.work).group.ranks == 2);
    }
  CHECK(sums == 2);
  CHECK(plan().pipeline->activations.gather->bytes.value() == 2 * 1024 * 1600);
  training.parallelism->format = MatrixFormat::fp8;
  CHECK(plan().pipeline->activations.gather->bytes.value() == 1024 * 1600);
}

// DeepSpeed exchanges queries, outputs, keys and values: four tensors of a rank's 200 tokens in
// each pass.
TEST_CASE("layout step: exchanging heads for tokens sends every tensor in each pass") {
  LayoutCase of{.cp = 5, .framework = FrameworkName::deepspeed};
  const TrainingPlan training = layout_training(of);
  CollectiveCosts costs;
  const auto sent = [&](std::int64_t tokens) {
    return run_step(training, {StepKind::uniform, tokens, 1}, costs)
        .metrics.wire_bytes_per_gpu.value();
  };
  const double part = 2 * 200. * 1600 * 4 / 5;
  CHECK(sent(2000) - sent(1000) == Approx(48 * 8 * 2 * 4 * part).epsilon(1e-6));
}

// Gathers of weights overlap a pass, but not the collectives of the pass that use the same NIC.
TEST_CASE("layout step: sharded weights and tensor parallelism between nodes share the NICs") {
  TrainingPlan training = layout_training({.tp = 5,
                                           .dp = 4,
                                           .micro = 5,
                                           .micro_batches = 1,
                                           .sharding = Sharding::weights,
                                           .framework = FrameworkName::torchtitan,
                                           .sequence_parallel = true});
  training.gpus_per_node = training.parallelism->layout.gpus_per_node = 1;
  training.cluster = std::make_shared<const Cluster>(
      load_cluster("emulated-ethernet-100mbit", {{"node.gpus", "1"}}));
  CollectiveCosts costs;
  const StepMetrics step = run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics;
  const Cluster& cluster = *training.cluster;
  const double nics = cluster.nics * cluster.nic_bandwidth.value.value();
  CHECK(step.step_time.s() >= step.network_bytes_per_node.value() / nics);
}

// A node of 8, whose processors update 1/8 of the weights for each of 8 ranks. A weight takes 48
// bytes of memory traffic at stage 3, and 42 at stage 2, with 8 accumulated micro batches.
TEST_CASE("layout step: an optimizer on the host waits for its memory, and for copies") {
  const auto finish = [](Sharding sharding, std::int64_t micro_batches = 8) {
    const TrainingPlan training = layout_training({.dp = 8,
                                                   .micro_batches = micro_batches,
                                                   .sharding = sharding,
                                                   .framework = FrameworkName::deepspeed,
                                                   .optimizer_on = OptimizerOn::host});
    const StepPlan plan = plan_step(training, {StepKind::uniform, 1024, 1});
    CollectiveCosts costs;
    const std::vector<Price> prices = price(plan, training, costs);
    struct {
      double seconds = 0, down = 0, up = 0;
      Interval ends;
    } found;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const PlanOp& op = plan.ops[i];
      CHECK_FALSE(std::holds_alternative<KernelWork>(op.work));
      if (const auto* copy = std::get_if<HostCopy>(&op.work)) {
        found.down += copy->down_bytes;
        found.up += copy->up_bytes;
      }
      if (!std::holds_alternative<HostUpdate>(op.work)) continue;
      found.seconds += prices[i].time.s();
      found.ends = prices[i].compute;
      CHECK_FALSE(prices[i].coverage.has_value());
    }
    return found;
  };
  const TrainingPlan training = layout_training({.dp = 8});
  const auto weights = static_cast<double>(optimized_parameters(*training.model));
  const double rate = training.cluster->host_memory.value.value();
  const auto stage3 = finish(Sharding::weights), stage2 = finish(Sharding::gradients);
  CHECK(stage3.seconds == Approx(48 * weights / rate).epsilon(1e-6));
  CHECK(stage2.seconds == Approx(42 * weights / rate).epsilon(1e-6));
  CHECK(stage3.down == Approx(2 * 8 * weights / 8));
  CHECK(stage3.up == Approx((2 * 7 + 2) * weights / 8));
  CHECK(stage2.down == Approx((2 * 8 + 4) * weights / 8));
  CHECK(stage2.up == Approx((2 * 7 + 2) * weights / 8));
  // With one micro batch nothing is accumulated: gradients are copied in fp32 at stage 2, in 16
  // bits at stage 3.
  CHECK(finish(Sharding::gradients, 1).down == Approx(4 * weights / 8));
  CHECK(finish(Sharding::weights, 1).down == Approx(2 * weights / 8));
  CHECK(finish(Sharding::weights, 1).up == Approx(2 * weights / 8));
  CHECK(stage3.ends.high.s() == Approx(std::exp(0.7) * stage3.seconds));
}

// DeepSpeed's stages 1 and 2 sum whole gradients and keep their share. Adapters at stage 2 have 16
// x 6 widths in each of 48 blocks, in one bucket of 5e8 elements or in several smaller ones.
TEST_CASE("layout step: DeepSpeed sums whole gradients in buckets") {
  TrainingPlan training = layout_training(
      {.dp = 8, .sharding = Sharding::gradients, .framework = FrameworkName::deepspeed});
  const auto plan = [&] { return *plan_step(training, {StepKind::uniform, 1024, 1}).pipeline; };
  REQUIRE(plan().gradients_reduce.size() == 1);
  CHECK(plan().gradients_reduce[0].op == Op::all_reduce);
  training.model = std::make_shared<const ModelShape>(with_adapters(*training.model, {16}, {}));
  CHECK(plan().reduced_pieces == 48);
  CHECK(plan().gradients_reduce[0].bytes.value() == Approx(2 * 48 * 16 * 6 * 1600.));
  training.parallelism->framework.least_bucket = 500'000;
  CHECK(plan().reduced_pieces == 3);
  CHECK_FALSE(plan().hides_sharding);
  training.parallelism->framework.overlaps_gradients = true;
  CHECK(plan().hides_sharding);
  training.parallelism->framework = framework_of(FrameworkName::megatron);
  CHECK(plan().gradients_reduce[0].op == Op::reduce_scatter);
  CHECK(plan().reduced_pieces == 1);
}

// 16 stages of GPT-2 XL on two nodes of 8 GPUs: the eighth stage sends to the other node. The
// fourteen others, except for the last stage, send within their node.
TEST_CASE("layout step: stages that share a node send to the next node too") {
  const auto passes = [](const TrainingPlan& training) {
    return *plan_step(training, {StepKind::uniform, 1024, 1}).pipeline;
  };
  TrainingPlan training = layout_training({.pp = 16, .micro_batches = 32});
  const PipelinePlan plan = passes(training);
  REQUIRE(plan.sends.size() == 15);
  for (std::size_t p = 0; p < plan.sends.size(); ++p) {
    CHECK(plan.sends[p].group.nodes() == (p == 7 ? 2 : 1));
    CHECK(plan.sends[p].bytes.value() == 2. * 1024 * 1600);
  }
  CollectiveCosts costs;
  const auto price = [&](const PipelinePlan& of) {
    return price_pipeline(of, training, costs, End::expected, 0);
  };
  const PipelinePrice priced = price(plan);
  const auto sends = [&](std::size_t p) { return priced.chunks[p].send_forward; };
  CHECK(sends(7) > sends(6));
  CHECK(sends(6) == sends(8));
  CHECK(sends(15) == Duration());
  CHECK(priced.chunks[8].send_backward == sends(7));
  CHECK(priced.chunks[0].send_backward == Duration());
  // Each micro batch sends an activation one way and a gradient the other.
  for (const std::size_t stage : {7, 8})
    CHECK(priced.network_bytes_per_node[stage].value() == Approx(32 * 2. * 1024 * 1600));
  CHECK(priced.network_bytes_per_node[6].value() == 0);
  // No other stage sends to the other node, except that both end stages sum the tied embedding in
  // fp32: each node sends all of its bytes.
  const StepMetrics step = run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics;
  CHECK(step.network_bytes_per_node.value() == Approx(32 * 2. * 1024 * 1600 + 4. * 50257 * 1600));
  // With several chunks the last stage sends to the first one, and back.
  training = layout_training({.pp = 16, .chunks = 3, .micro_batches = 32});
  const PipelinePlan interleaved = passes(training);
  REQUIRE(interleaved.sends.size() == 47);
  CHECK(interleaved.sends[15].group.nodes() == 2);
  CHECK(interleaved.sends[16].group.nodes() == 1);
  // In a V-shaped schedule the last stage holds both chunks at the turn, and sends nothing there.
  training = layout_training({.pp = 12, .chunks = 2, .micro_batches = 24});
  training.parallelism->schedule = parallel::PipelineSchedule::zbv;
  const PipelinePlan v = passes(training);
  REQUIRE(v.sends.size() == 23);
  CHECK(v.sends[11].group.ranks == 1);
  CHECK(price(v).chunks[11].send_forward == Duration());
  for (const std::size_t p : {7, 15}) CHECK(v.sends[p].group.nodes() == 2);
}

// Without sequence parallelism every tensor rank has the whole activation. In DeepSpeed each rank
// sends a part, and the receivers gather them; in Megatron-LM each sends the whole.
TEST_CASE(
    "layout step: ranks send parts of an activation, gathered if ranks compute with the whole") {
  for (const auto& [framework, sequence_parallel, sent, gathered] :
       {std::tuple{FrameworkName::deepspeed, false, 1. / 5, true},
        std::tuple{FrameworkName::deepspeed, true, 1. / 5, false},
        std::tuple{FrameworkName::megatron, false, 1., false},
        std::tuple{FrameworkName::megatron, true, 1. / 5, false}}) {
    const StepPlan plan = plan_step(
        layout_training(
            {.tp = 5, .pp = 2, .framework = framework, .sequence_parallel = sequence_parallel}),
        {StepKind::uniform, 1024, 1});
    const double whole = 2. * 1024 * 1600;
    REQUIRE(plan.pipeline->sends.size() == 1);
    CHECK(plan.pipeline->sends[0].bytes.value() == Approx(whole * sent));
    REQUIRE(plan.pipeline->sends_gather.has_value() == gathered);
    if (!gathered) continue;
    CHECK(plan.pipeline->sends_gather->group.ranks == 5);
    CHECK(plan.pipeline->sends_gather->bytes.value() == whole);
  }
}

// DeepSpeed's stage 3 of GPT-2 XL: a block of 12 h^2 + 13 h elements, h = 1,600, has vectors of up
// to 4 h and matrices of h^2 to 4 h^2. Outside the blocks are two vectors and 1,024 h positions.
TEST_CASE("layout step: DeepSpeed's stage 3 gathers small weights once, others matrix by matrix") {
  TrainingPlan training = layout_training(
      {.dp = 8, .sharding = Sharding::weights, .framework = FrameworkName::deepspeed});
  Framework& framework = training.parallelism->framework;
  const auto gathered = [&](const StepPlan& plan) {
    const PipelinePlan& passes = *plan.pipeline;
    return passes.weights_gather->bytes.value() * passes.weight_pieces * 48 +
           passes.outer_weights_gather->bytes.value();
  };
  const auto once = [&](const StepPlan& plan) {
    for (const PlanOp& op : plan.ops)
      if (op.name == "all_gather weights that stay whole")
        return std::get<Call>(op.work).bytes.value();
    return 0.;
  };
  const auto plan = [&] { return plan_step(training, {StepKind::uniform, 1024, 1}); };
  const double h = 1600;
  CHECK(plan().pipeline->weight_pieces == 1);
  CHECK(once(plan()) == Approx(2 * (48 * 13 * h + 2 * h)));
  const double all = gathered(plan()) + once(plan());
  const double default_memory = forecast_memory(training).peak.value();
  framework.persistent_tensor = 0;
  CHECK(once(plan()) == 0);
  CHECK(gathered(plan()) == Approx(all));
  framework.persistent_tensor = 3e6;  // now matrices of h^2 and positions also stay whole
  CHECK(once(plan()) > 2 * 48 * h * h);
  CHECK(gathered(plan()) + once(plan()) == Approx(all));
  CHECK(forecast_memory(training).peak.value() > default_memory);
  framework.persistent_tensor = 1e5;
  framework.prefetch_bucket = 1e7;
  CHECK(plan().pipeline->weight_pieces == 4);
  // For any small bucket, each matrix is gathered whole: four in GPT's block, seven in Llama's.
  framework.prefetch_bucket = 1e3;
  CHECK(plan().pipeline->weight_pieces == 4);
  training.model = std::make_shared<const ModelShape>(load_model("llama3-8b"));
  CHECK(plan().pipeline->weight_pieces == 7);
}

// In fine-tuning only the adapters have gradients, updates and gathered weights: 16 x 6 widths of
// 1,600 in 48 blocks, over 5 ranks. Nothing is gathered again for weight gradients. Adapters gather
// tensors 16 wide and exchange tokens for columns.
TEST_CASE("layout step: only adapters are reduced, and tensor ranks exchange their parts") {
  TrainingPlan training = layout_training(
      {.tp = 5, .dp = 4, .sharding = Sharding::optimizer, .sequence_parallel = true});
  const auto sum_of = [](const StepPlan& plan, const std::string& name) {
    double bytes = 0;
    for (const PlanOp& op : plan.ops)
      if (const auto* of = std::get_if<Call>(&op.work); of && op.name.starts_with(name))
        bytes += of->bytes.value() * static_cast<double>(op.times);
    return bytes;
  };
  training.model = std::make_shared<const ModelShape>(with_adapters(*training.model, {16}, {}));
  const StepPlan plan = plan_step(training, {StepKind::uniform, 1000, 1});
  const double adapters = 48 * 16 * 6 * 1600. / 5;
  CHECK(sum_of(plan, "reduce_scatter gradients") == Approx(4 * adapters));
  CHECK(sum_of(plan, "all_gather weights") == Approx(2 * adapters));
  CHECK(sum_of(plan, "all_reduce gradients of norms") == 0);
  CHECK(plan.pipeline->adapters_gather->bytes.value() == 2 * 1000 * 16);
  CHECK(plan.pipeline->adapters_exchange->op == Op::all_to_all);
  CHECK(plan.pipeline->adapters_exchange->bytes.value() == 2 * 1000 * 1600 / 5.);
  // Each of 48 blocks has, forward and backward, three gathers and an exchange for attention, and
  // as many for the feed-forward if it has adapters.
  CollectiveCosts costs;
  const auto collectives = [&](AdapterTargets targets) {
    TrainingPlan of = layout_training({.tp = 5,
                                       .dp = 4,
                                       .micro_batches = 1,
                                       .sharding = Sharding::optimizer,
                                       .sequence_parallel = true});
    of.model = std::make_shared<const ModelShape>(with_adapters(*of.model, {16, targets}, {}));
    return run_step(of, {StepKind::uniform, 1000, 1}, costs).metrics.num_collectives;
  };
  CHECK(collectives(AdapterTargets::all) - collectives(AdapterTargets::attention) ==
        48 * 2 * (3 + 1));
  TrainingPlan two = layout_training({.tp = 2, .sequence_parallel = true});
  two.model = training.model;
  CHECK(plan_step(two, {StepKind::uniform, 1000, 1}).pipeline->adapters_gather);
}

TEST_CASE("layout step: buckets of gradients add up to all gradients, for any number of buckets") {
  TrainingPlan training = layout_training({.dp = 4, .sharding = Sharding::optimizer});
  const auto all = static_cast<double>(optimized_parameters(*training.model));  // 1.56e9
  for (const double bucket : {2e9, 8e8, 6e8, 1e8}) {
    training.parallelism->framework.least_bucket = bucket;
    double bytes = 0;
    std::int64_t buckets = 0;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 1024, 1}).ops) {
      if (!op.name.starts_with("reduce_scatter gradients")) continue;
      bytes += std::get<Call>(op.work).bytes.value() * static_cast<double>(op.times);
      buckets += op.times;
    }
    CHECK(buckets == std::llround(std::ceil(all / bucket)));
    CHECK(bytes == Approx(4 * all));
  }
}

// Weights of the last step are gathered bucket by bucket; the passes begin after the first bucket.
TEST_CASE("layout step: the first bucket of weights comes before the passes") {
  TrainingPlan training = layout_training({.dp = 4, .sharding = Sharding::optimizer});
  training.parallelism->framework.least_bucket = 4e8;  // the model has 1.56e9
  const StepPlan plan = plan_step(training, {StepKind::uniform, 1000, 1});
  std::vector<std::int64_t> times;
  std::vector<OpId> gathers;
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].name == "all_gather weights of the last step") {
      times.push_back(plan.ops[i].times);
      gathers.push_back(static_cast<OpId>(i));
    }
  CHECK(times == std::vector<std::int64_t>{1, 3});
  const auto passes = std::find_if(plan.ops.begin(), plan.ops.end(), [](const PlanOp& op) {
    return std::holds_alternative<StageWork>(op.work);
  });
  REQUIRE(passes != plan.ops.end());
  CHECK(passes->after == std::vector<OpId>{gathers.front()});
}

// With frozen weights, the scatter of input gradients can only overlap its own product.
TEST_CASE("layout step: input gradients of frozen products are hidden only chunk by chunk") {
  const auto exposed = [](bool frozen, TensorOverlap overlap) {
    TrainingPlan training = layout_training({.tp = 5, .micro = 4, .sequence_parallel = true});
    if (frozen)
      training.model = std::make_shared<const ModelShape>(with_adapters(*training.model, {16}, {}));
    training.parallelism->framework.tensor_overlap = overlap;
    CollectiveCosts costs;
    return run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.exposed_comm.s();
  };
  CHECK(exposed(true, TensorOverlap::all) > 1.2 * exposed(true, TensorOverlap::chunks));
  CHECK(exposed(false, TensorOverlap::all) < 1.5 * exposed(false, TensorOverlap::chunks));
}

}  // namespace
}  // namespace lambcast
