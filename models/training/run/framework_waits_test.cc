#include <catch2/catch.hpp>
#include <vector>

#include "models/training/price/beside_collectives.h"
#include "models/training/price/pass_price.h"
#include "models/training/run/layout_case.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using parallel::Sharding;

// The 1.56e9 gradients of GPT-2 XL in buckets of 16.8e6: all except the last are reduced during the
// backward pass of one micro batch, and all sums of several after it.
TEST_CASE("layout step: TensorFlow reduces the sums of several micro batches after the passes") {
  const auto buckets_in_turn = [](std::int64_t micro_batches) {
    const TrainingPlan training = layout_training(
        {.dp = 8, .micro_batches = micro_batches, .framework = FrameworkName::tensorflow});
    std::vector<std::int64_t> times;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 1024, 1}).ops)
      if (op.name == "all_reduce gradients") times.push_back(op.times);
    return times;
  };
  CHECK(buckets_in_turn(1) == std::vector<std::int64_t>{92, 1});
  CHECK(buckets_in_turn(2) == std::vector<std::int64_t>{93});
  CHECK(buckets_in_turn(8) == std::vector<std::int64_t>{93});
}

// PaddleNLP's options that hide communication are off by default.
TEST_CASE("layout step: Paddle exposes what Megatron-LM hides") {
  const auto exposed = [](LayoutCase of) {
    CollectiveCosts costs;
    const TrainingPlan training = layout_training(of);
    const PipelinePlan plan = *plan_step(training, {StepKind::uniform, 1024, 1}).pipeline;
    const ChunkPrice chunk = price_pipeline(plan, training, costs, End::expected, 0).chunks.front();
    return chunk.input_gradient.exposed;
  };
  const LayoutCase layouts[] = {{.tp = 2, .dp = 4}, {.dp = 8, .sharding = Sharding::gradients}};
  for (LayoutCase of : layouts) {
    const Duration hidden = exposed(of);
    of.framework = FrameworkName::paddle;
    CHECK(exposed(of) > hidden.scaled(1.5));
  }
}

// Each bucket except the last is reduced during the next part of the backward pass.
TEST_CASE("step: kernels lose time to the buckets that PyTorch reduces during the backward pass") {
  TrainingPlan training = training_of({OptimizerType::lamb, 32, "paper-eth40-v100"});
  const StepMetrics alone = metrics_of(training, StepKind::uniform);
  training.overlap = Overlap::ddp;
  CollectiveCosts costs;
  const StepRun run = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  Duration lost, reduced;
  std::size_t slowed = 0, buckets = 0;
  for (std::size_t i = 0; i < run.plan.ops.size(); ++i) {
    const PlanOp& op = run.plan.ops[i];
    const Duration time = run.prices[i].time;
    if (op.name.starts_with("all_reduce bucket")) {
      ++buckets;
      reduced = time;
    }
    const auto* slowdown = std::get_if<Slowdown>(&op.work);
    if (slowdown == nullptr) continue;
    ++slowed;
    lost += time;
    const double share = lost_to_collectives(slowdown->beside.group, *training.device->rates);
    CHECK(time.s() == Approx(lost_beside(reduced, run.prices[i - 1].time, share).s()));
  }
  CHECK(buckets > 2);
  CHECK(slowed == buckets - 1);
  CHECK(lost > Duration());
  CHECK(run.metrics.backward.s() == Approx((alone.backward + lost).s()));
}

}  // namespace
}  // namespace lambcast
