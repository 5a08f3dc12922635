#include <catch2/catch.hpp>
#include <vector>

#include "models/training/price/pass_price.h"
#include "models/training/run/layout_case.h"

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

}  // namespace
}  // namespace lambcast
