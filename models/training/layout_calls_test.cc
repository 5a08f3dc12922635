#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "models/training/layout_case.h"

namespace lambcast {
namespace {
using parallel::Sharding;

// Megatron-LM sums what every tensor rank holds whole: norms and the biases behind a block's two
// scatters, positions and the last norm, in fp32.
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

// Ranks that hold pieces of a tensor sum its statistics: those of a tensor group, and of a shard
// where states are sharded.
TEST_CASE("layout step: statistics of tensors are summed where a tensor is divided") {
  const auto groups = [](Sharding sharding) {
    TrainingPlan training = layout_training({.tp = 5, .dp = 4, .sharding = sharding});
    training.recipe.optimizer = OptimizerType::adafactor;
    std::vector<int> ranks;
    for (const PlanOp& op : plan_step(training, {StepKind::uniform, 1024, 1}).ops)
      if (op.name == "all_reduce statistics of tensors")
        ranks.push_back(std::get<Call>(op.work).group.ranks);
    return ranks;
  };
  CHECK(groups(Sharding::none) == std::vector<int>{5});
  CHECK(groups(Sharding::optimizer) == std::vector<int>{4, 5});
}

// DeepSpeed exchanges queries and outputs, keys and values: four of a rank's 200 tokens each way.
TEST_CASE("layout step: heads exchanged for tokens go over the wire twice each pass") {
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

// Gathers of weights hide behind a pass, not behind the collectives of the pass that leave by the
// same NIC.
TEST_CASE("layout step: sharded weights and tensor parallelism over nodes share the NICs") {
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

}  // namespace
}  // namespace lambcast
