#include "models/training/plan/expert_plan.h"

#include <catch2/catch.hpp>

#include "models/training/memory/memory.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/step_plan.h"
#include "models/training/price/one_hot_dispatch.h"
#include "models/training/price/weight_stream.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {
using parallel::Sharding;

// Qwen3-30B-A3B (48 layers, hidden size 2048, 128 experts of 768 columns, 8 per token) on DGX
// A100s, which sum gradients in rings.
struct ExpertCase {
  int ep = 8, dp = 8, tp = 1, etp = 0, pp = 1;
  ExpertUse use = {};
  const char* model = "qwen3-30b-a3b";
  Sharding sharding = Sharding::none;
  std::int64_t micro_batches = 3;
  bool same_tokens = false;  // in a tensor group
};

TrainingPlan expert_training(const ExpertCase& of) {
  TrainingPlan training =
      training_of({OptimizerType::adamw, of.tp * of.dp * of.pp, "dgx-a100-80g", of.model});
  training.seq_len = 1000;
  training.batch = {2 * of.micro_batches * of.dp, 2, of.micro_batches};
  Parallelism how;
  how.layout.tp = of.tp, how.layout.ep = of.ep, how.layout.dp = of.dp, how.layout.pp = of.pp;
  how.layout.etp = of.etp;
  how.layout.gpus_per_node = 8;
  how.framework = framework_of(FrameworkName::megatron);
  how.sequence_parallel = of.tp > 1 && !of.same_tokens;
  how.sharding = of.sharding;
  how.shard_ranks = of.sharding == Sharding::none ? 1 : how.replicas();
  how.experts = of.use;
  training.parallelism = how;
  training.kernels = Kernels::nvidia;
  return training;
}

StepMetrics expert_step(const ExpertCase& of) {
  CollectiveCosts costs;
  return run_step(expert_training(of), {StepKind::uniform, 1000, 1}, costs).metrics;
}

ExpertPlan plan_of(const ExpertCase& of) {
  const TrainingPlan training = expert_training(of);
  return expert_plan(*training.model, *training.parallelism, block_work_of(training, 1000)).value();
}

constexpr double token_bytes = 2.0 * 2000 * 2048;  // in a micro batch of 2 x 1000

TEST_CASE("experts: an exchange carries a copy of a token for each of its experts") {
  const ExpertPlan plan = plan_of({});
  REQUIRE(plan.inside);
  CHECK(plan.inside->group == ProcessGroup{8, 8, 1, 1, 1});
  CHECK(plan.inside->bytes.value() == 8 * token_bytes);
  CHECK_FALSE(plan.between);
  // With a capacity factor: 8 x 1.25 copies, full or not. Dropless: 8 x 1.5, since all ranks wait
  // for the one with the most rows.
  CHECK(plan_of({.use = {.capacity_factor = 1.25}}).inside->bytes.value() == 10 * token_bytes);
  CHECK(plan_of({.use = {.imbalance = {1.5, {}}}}).inside->bytes.value() == 12 * token_bytes);
  CHECK_FALSE(plan_of({.ep = 1}).inside);
  // A rank with all experts computes the choices of its own tokens; with a capacity factor it
  // computes all slots.
  CHECK(plan_of({.ep = 1, .use = {.imbalance = {1.5, {}}}}).block.experts->rows == 2000 * 8);
  CHECK(plan_of({.ep = 1, .use = {.capacity_factor = 1.5}}).block.experts->rows == 3000 * 8);
}

// With g owners of E/g experts each, a token with one expert is sent to one owner, and one with E/g
// + 1 experts to at least two. With E = 4, g = 2, k = 2, the second expert is at the first one's
// owner in one of three cases: 1/3 + 2 * 2/3 = 5/3.
TEST_CASE("experts: tokens sent once go to as many ranks as own their experts") {
  CHECK(owners_met(128, 1, 8) == Approx(1));
  CHECK(owners_met(4, 2, 2) == Approx(5 / 3.));
  CHECK(owners_met(4, 3, 2) == Approx(2));
  CHECK(owners_met(7, 7, 7) == Approx(7));
  const ExpertUse once{.dispatch = Dispatch::deduplicated};
  CHECK(plan_of({.use = once}).inside->bytes.value() ==
        Approx(token_bytes * owners_met(128, 8, 8)));
  // With four nodes, a token is sent once to each node, and from there to each rank. The slower
  // part counts.
  const ExpertPlan far = plan_of({.ep = 32, .dp = 32, .use = once});
  CHECK(far.at_once);
  CHECK(far.between->group == ProcessGroup{4, 1, 1, 1, 8});
  CHECK(far.between->bytes.value() == Approx(token_bytes * owners_met(128, 8, 4)));
  CHECK(far.inside->group == ProcessGroup{8, 8, 1, 1, 1});
  CHECK(far.inside->bytes.value() == Approx(token_bytes * owners_met(128, 8, 32)));
}

// A tensor group with the same 2,000 tokens computes 8 x 2,000 rows once, as one rank does.
TEST_CASE("experts: a tensor group without sequence parallelism computes each row once") {
  const auto plan = [](int tp, int etp) {
    return plan_of({.ep = 1, .tp = tp, .etp = etp, .same_tokens = true});
  };
  // Four ranks share each expert: all rows on each, partial results summed.
  const ExpertPlan divided = plan(4, 4);
  CHECK(divided.block.experts->rows == 8 * 2000);
  CHECK(divided.block.experts->ffn == 768 / 4);
  REQUIRE(divided.rows_sum);
  CHECK(divided.rows_sum->bytes.value() == 8 * token_bytes);
  CHECK(divided.rows_sum->group.ranks == 4);
  CHECK_FALSE((divided.rows_gather || divided.rows_scatter || divided.shares_gather));
  // Whole experts: a quarter of the rows on each rank, and the results gathered.
  const ExpertPlan whole = plan(4, 1);
  CHECK(whole.block.experts->rows == 2 * 2000);
  REQUIRE(whole.shares_gather);
  CHECK(whole.shares_gather->bytes.value() == 8 * token_bytes);
  CHECK_FALSE((whole.rows_sum || whole.rows_gather));
  // Experts over eight ranks: an exchange carries the rank's share.
  CHECK(plan_of({.ep = 8, .dp = 8, .tp = 4, .etp = 1, .same_tokens = true}).inside->bytes.value() ==
        2 * token_bytes);
}

// Tutel: the same bytes inside the node and between nodes, in messages that are eight times as
// large.
TEST_CASE("experts: a hierarchical exchange sends everything twice, in larger messages") {
  const ExpertPlan plan =
      plan_of({.ep = 32, .dp = 32, .use = {.dispatch = Dispatch::hierarchical}});
  CHECK_FALSE(plan.at_once);
  CHECK(plan.inside->bytes.value() == 8 * token_bytes);
  CHECK(plan.between->bytes.value() == 8 * token_bytes);
  CHECK(plan.between->group.ranks == 4);
}

TEST_CASE("experts: nodes of one GPU exchange nothing inside, nodes of two GPUs do") {
  for (const int on_node : {1, 2, 8}) {
    TrainingPlan training =
        expert_training({.ep = 16, .dp = 16, .use = {.dispatch = Dispatch::hierarchical}});
    training.parallelism->layout.gpus_per_node = on_node;
    const ExpertPlan plan =
        expert_plan(*training.model, *training.parallelism, block_work_of(training, 1000)).value();
    REQUIRE(plan.between);
    CHECK(plan.between->group.ranks == 16 / on_node);
    CHECK(plan.inside.has_value() == (on_node > 1));
    if (plan.inside) CHECK(plan.inside->group.ranks == on_node);
  }
}

TEST_CASE("experts: tensor parallelism inside them gathers the rows of its ranks") {
  const ExpertPlan plan = plan_of({.ep = 4, .dp = 4, .tp = 2});
  REQUIRE(plan.rows_gather);
  CHECK(plan.rows_gather->group.ranks == 2);
  // Each rank starts with half of the tokens and computes the rows of both ranks.
  CHECK(plan.block.experts->rows == 2000 * 8);
  CHECK(plan.block.experts->ffn == 384);
  CHECK(plan.rows_gather->bytes.value() == 8 * token_bytes);
  // A shared expert is divided too: 1,024 of its 2,048 columns.
  CHECK(plan_of({.ep = 4, .dp = 4, .tp = 2, .model = "deepseek-v3"}).block.experts->shared_ffn ==
        1024);
  // Megatron-LM with etp 1: experts are distributed over both ranks of a tensor group.
  const ExpertPlan whole = plan_of({.ep = 8, .dp = 4, .tp = 2, .etp = 1});
  CHECK_FALSE(whole.rows_gather);
  CHECK(whole.block.experts->rows == 1000 * 8);
  CHECK(whole.inside->group.ranks == 8);
}

// Each of 48 layers has two exchanges forward and two backward, of which 7/8 leave the rank. Dense
// gradients are summed over 8 ranks; each expert is on one rank, so its gradients are not summed.
TEST_CASE("experts: a step sends four exchanges a layer and sums gradients among equals") {
  const ModelShape shape = load_model("qwen3-30b-a3b");
  double experts = 0;
  for (const Tensor& tensor : shape.tensors)
    if (tensor.expert) experts += static_cast<double>(tensor.elements);
  const double dense = static_cast<double>(parameters(shape)) - experts;
  const double exchanges = 3 * 48 * 4 * 7 / 8. * 8 * token_bytes;
  CHECK(expert_step({}).wire_bytes_per_gpu.value() ==
        Approx(exchanges + 2 * 7 / 8. * 4 * dense).epsilon(1e-3));
  // With twice the ranks, each expert is on two of them.
  CHECK(expert_step({.dp = 16}).wire_bytes_per_gpu.value() ==
        Approx(exchanges + 2 * 15 / 16. * 4 * dense + 2 * 1 / 2. * 4 * experts / 8).epsilon(1e-3));
}

TEST_CASE("experts: overlapped exchanges cost less; an uneven load and more launches cost more") {
  const auto time = [](ExpertUse use) { return expert_step({.use = use}).step_time; };
  const Duration plain = time({});
  CHECK(time({.overlapped = true, .kernels = ExpertKernels::grouped}) <
        time({.kernels = ExpertKernels::grouped}));
  CHECK(time({.kernels = ExpertKernels::grouped}) < plain);
  CHECK(time({.imbalance = {1.5, {}}}) > plain);
  CHECK(time({.capacity_factor = 2}) > plain);
  // With overlap, kernels for each expert, which the host starts one by one, take longer than one
  // grouped kernel.
  CHECK(time({.overlapped = true}) > time({.overlapped = true, .kernels = ExpertKernels::grouped}));
}

// An expert's products start 22 kernels in 8 bits and 6 in 16 bits; a block cut into pieces starts
// 80 and about 65. Each launch belongs to one of both passes.
TEST_CASE("experts: the host starts kernels for each expert of a rank, and for pieces of blocks") {
  TrainingPlan training = expert_training({.use = {.overlapped = true}});
  const auto plan = [&] {
    return expert_plan(*training.model, *training.parallelism, block_work_of(training, 1000))
        .value();
  };
  const ExpertPlan half = plan();
  training.parallelism->format = MatrixFormat::fp8;
  const ExpertPlan eight = plan();
  CHECK(eight.launches == Approx(32 * 128 / 8));
  CHECK(half.launches / eight.launches == Approx(6. / 22));
  CHECK((half.least_launches - half.launches) / (eight.least_launches - eight.launches) ==
        Approx(65. / 80).epsilon(0.02));
  const Duration launch = Duration::microseconds(5);
  const HostTime time = host_time(half, launch);
  CHECK((time.forward + time.backward).s() == Approx(half.launches * launch.s()));
  CHECK((time.least_forward + time.least_backward).s() == Approx(half.least_launches * launch.s()));
  CHECK(time.forward / time.least_forward == Approx(time.backward / time.least_backward));
}

// With 2,000 tokens per micro batch and experts of 3 x 768 columns, the dispatch takes 2 x 2000 /
// 2304 of the experts' FLOPs.
TEST_CASE("experts: a dispatch by products that costs more than the experts is a finding") {
  const auto finding = find_one_hot_dispatch(expert_training({.use = deepspeed_experts}));
  REQUIRE(finding.has_value());
  CHECK_THAT(finding->message, Catch::Contains("2000 tokens") && Catch::Contains("1.7 times"));
  CHECK_FALSE(find_one_hot_dispatch(expert_training({})));
  CHECK_FALSE(
      find_one_hot_dispatch(expert_training({.use = deepspeed_experts, .model = "mixtral-8x7b"})));
}

// In 16 bits the host starts only the six products of an expert, in 8 bits their casts too.
TEST_CASE("experts: fewer bits need more kernels") {
  const auto launches = [](MatrixFormat format, int ep) {
    TrainingPlan training = expert_training({.ep = ep});
    training.parallelism->format = format;
    return expert_plan(*training.model, *training.parallelism, block_work_of(training, 1000))
        ->launches;
  };
  CHECK(launches(MatrixFormat::half, 8) ==
        Approx(launches(MatrixFormat::fp8, 8) * 6 / 22).epsilon(1e-12));
  CHECK(launches(MatrixFormat::half, 4) == Approx(2 * launches(MatrixFormat::half, 8)));
}

TEST_CASE("experts: passes of the warm-up and the cool-down have no pass to overlap") {
  using parallel::PipelineSchedule;
  CHECK(parallel::unpaired_share({PipelineSchedule::one_f_one_b, 1, 1, 7}) == Approx(1 / 7.));
  CHECK(parallel::unpaired_share({PipelineSchedule::one_f_one_b, 5, 1, 7}) == Approx(5 / 7.));
  CHECK(parallel::unpaired_share({PipelineSchedule::interleaved, 3, 5, 12}) ==
        Approx((2 * 2 + 4 * 3 + 1) / 60.));
  CHECK(parallel::unpaired_share({PipelineSchedule::gpipe, 3, 1, 12}) == 1);
}

TEST_CASE("experts: overlap hides less of a short step's exchanges") {
  const auto gain = [](std::int64_t micro_batches) {
    const auto time = [&](bool overlapped) {
      TrainingPlan training =
          expert_training({.ep = 16,
                           .dp = 16,
                           .use = {.overlapped = overlapped, .kernels = ExpertKernels::grouped},
                           .micro_batches = micro_batches});
      // Overlapping gradient collectives would take turns with the exposed token exchanges.
      training.parallelism->framework.overlaps_gradients = false;
      CollectiveCosts costs;
      return run_step(training, {StepKind::uniform, 1000, 1}, costs).metrics.step_time.s();
    };
    return (time(false) - time(true)) / static_cast<double>(micro_batches);
  };
  CHECK(gain(1) == Approx(0).margin(1e-12));
  CHECK(gain(2) == Approx(gain(8) * (1 - 1 / 2.) / (1 - 1 / 8.)).epsilon(1e-6));
}

// Four nodes, whose tokens cross the NICs as their gradients do. If NICs take all of the time,
// sending both at once saves nothing.
TEST_CASE("experts: gradients that overlap token exchanges between nodes take turns with them") {
  TrainingPlan training = expert_training({.ep = 16, .dp = 32, .micro_batches = 1});
  auto slow = std::make_shared<Cluster>(*training.cluster);
  slow->nic_bandwidth.value = slow->nic_nominal.value = Bandwidth(1e7);
  training.cluster = slow;
  const auto step = [&](bool overlaps) {
    training.parallelism->framework.overlaps_gradients = overlaps;
    CollectiveCosts costs;
    return run_step(training, {StepKind::uniform, 1000, 1}, costs).metrics;
  };
  const StepMetrics beside = step(true);
  const double ratio = beside.step_time / step(false).step_time;
  INFO(ratio);
  CHECK(ratio > 0.98);
  CHECK(ratio < 1.1);
  // The time that a pass waits for its turn counts as communication, as it does on a shared
  // network.
  training.network = NetworkModel::flow;
  CHECK(beside.backward.s() == Approx(step(true).backward.s()).epsilon(1e-6));
  CHECK(beside.exposed_comm > 10 * beside.backward);
}

// Three blocks of 10 us. Gathers of 4 us are hidden, except for the first; with 14 us every block
// waits for its gather. Scatters of 4 us leave the last one exposed.
TEST_CASE("sharded weights: how long a pass waits for its stream of weights") {
  const auto us = [](double value) { return Duration::microseconds(value); };
  const auto exposed = [&](double gather, double scatter, double first = 0, double last = 0) {
    return exposed_on_stream({us(gather), us(scatter), us(first), us(last)}, 3, us(30)).us();
  };
  CHECK(exposed(4, 0) == Approx(4));
  CHECK(exposed(14, 0) == Approx(3 * 14 + 10 - 30));
  CHECK(exposed(0, 4) == Approx(4));
  CHECK(exposed(4, 4, 5, 3) == Approx(5 + 4 + 4 + 3));
  // Two blocks keep their weights. The weights of the third arrive while the second computes, or 4
  // us late.
  for (const auto& [gather, waits] : {std::pair{4, 1}, std::pair{14, 5}}) {
    const WeightStream kept{.gather = us(gather), .outer_gather = us(1), .kept = 2};
    CHECK(exposed_on_stream(kept, 3, us(30)).us() == Approx(waits));
    CHECK(kept.of(3) == us(gather + 1));
  }
}

// In a pass that is longer than its weight stream, only the first gather is exposed. Hidden
// collectives occupy as many of the 108 multiprocessors as NCCL has blocks: 4 for each of 8 ranks
// of a node. The collectives of experts' weights do not add to these 32.
TEST_CASE(
    "sharded weights: an overlapped collective slows computation once, with experts or without") {
  TrainingPlan training = expert_training({.ep = 1, .sharding = Sharding::weights});
  training.parallelism->framework = framework_of(FrameworkName::torchtitan);
  training.batch = {64 * 8, 64, 1};
  CollectiveCosts costs;
  const StepMetrics step = run_step(training, {StepKind::uniform, 1000, 1}, costs).metrics;
  INFO(step.exposed_comm.s() << " of " << step.gradient_comm.s());
  CHECK(step.exposed_comm / step.gradient_comm == Approx(32. / 108).epsilon(0.15));
}

TEST_CASE("sharded weights: streams of experts and of all others are one") {
  const auto us = [](double value) { return Duration::microseconds(value); };
  const WeightStream both =
      WeightStream{us(1), us(2), us(3), us(4)} + WeightStream{us(10), us(20), us(30), us(40)};
  CHECK(both.gather == us(11));
  CHECK(both.scatter == us(22));
  CHECK(both.outer_gather == us(33));
  CHECK(both.outer_scatter == us(44));
  CHECK(both.of(5) == us(5 * 33 + 77));
}

TEST_CASE(
    "experts: ranks hold their experts, and share states with the ranks that hold the same ones") {
  const auto held = [](const ExpertCase& of, const std::string& name) {
    for (const auto& [found, bytes] : forecast_memory(expert_training(of)).parts)
      if (found == name) return bytes.value();
    return 0.0;
  };
  const double of_experts = 48. * 128 * 3 * 2048 * 768;
  const double dense = static_cast<double>(parameters(load_model("qwen3-30b-a3b"))) - of_experts;
  CHECK(held({}, "weights") == Approx(2 * (dense + of_experts / 8)));
  CHECK(held({.dp = 16, .sharding = Sharding::optimizer}, "master_weights") ==
        Approx(4 * (dense / 16 + of_experts / 8 / 2)));
}

// A GPT of 24 layers with 12 tensors each. In every second layer the 4 tensors of the feed-forward
// are replaced by those of 128 experts and a gate. Qwen3 stacks a layer's experts in two tensors.
TEST_CASE("experts: an optimizer is launched only for the tensors of its own rank") {
  const auto tensors = [](const ExpertCase& of) {
    const StepPlan plan = plan_step(expert_training(of), {StepKind::uniform, 1000, 1});
    for (const PlanOp& op : plan.ops)
      if (op.name == "optimizer") return std::get<KernelWork>(op.work).tensors;
    return 0.0;
  };
  const char* const gpt = "deepspeed-moe-1.3b-128";
  const auto all = static_cast<double>(optimized_tensor_count(load_model(gpt)));
  const double of_experts = 12 * 4 * 128.0;
  CHECK(tensors({.ep = 1, .dp = 64, .model = gpt}) == all);
  CHECK(tensors({.ep = 64, .dp = 64, .model = gpt}) == all - of_experts + of_experts / 64);
  CHECK(tensors({.ep = 8, .dp = 8, .pp = 2, .model = gpt}) ==
        (all - of_experts + of_experts / 8) / 2);
  const auto stacked = static_cast<double>(optimized_tensor_count(load_model("qwen3-30b-a3b")));
  CHECK(tensors({.ep = 8}) == stacked);
}

TEST_CASE("experts: blocks without experts, shared experts and predicted layers are all counted") {
  const ExpertCase of{.ep = 8, .dp = 8, .model = "deepseek-v3"};
  const ExpertPlan plan = plan_of(of);
  CHECK(plan.predicted_layers == 1);
  CHECK(std::count(plan.layers.begin(), plan.layers.end(), true) == 58);
  CHECK(plan.block.experts->shared_ffn == 2048);
  CHECK(block_work_of(expert_training(of), 1000).ffn == 18432);
  // 59 layers with experts, including the predicted one.
  const double exchanges = 3 * 59 * 4 * 7 / 8. * 8 * (2.0 * 2000 * 7168);
  const double reduced = expert_step(of).wire_bytes_per_gpu.value() - exchanges;
  double experts = 0;
  const ModelShape shape = load_model("deepseek-v3");
  for (const Tensor& tensor : shape.tensors)
    if (tensor.expert) experts += static_cast<double>(tensor.elements);
  const double dense = static_cast<double>(parameters(shape)) - experts;
  CHECK(reduced == Approx(2 * 7 / 8. * 4 * dense).epsilon(1e-3));
}

}  // namespace
}  // namespace lambcast
