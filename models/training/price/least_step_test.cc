#include "models/training/price/least_step.h"

#include <catch2/catch.hpp>

#include "models/training/plan/gradient_reduction.h"
#include "models/training/run/layout_case.h"
#include "models/training/run/step.h"

namespace lambcast {
namespace {

// 48 equal blocks of time t each, m micro batches. One stage takes 48 m t. The last of p stages
// takes 48/p m t, and each stage before it adds 48/p t.
TEST_CASE("least step: blocks of the busiest stage, and the way through the stages before it") {
  const auto least = [](const LayoutCase& of) {
    CollectiveCosts costs;
    const TrainingPlan training = layout_training(of);
    const DistinctStep step{StepKind::uniform, 1024, 1};
    const Duration time = least_step_time(training, step, costs);
    CHECK(time < run_step(training, step, costs).metrics.step_time);
    return time.s();
  };
  const double block = least({.micro_batches = 1}) / 48;
  CHECK(block > 0);
  for (const std::int64_t m : {4, 8, 32}) {
    CHECK(least({.micro_batches = m}) == Approx(48. * static_cast<double>(m) * block));
    for (const int p : {2, 4})
      CHECK(least({.pp = p, .micro_batches = m}) ==
            Approx(48. / p * static_cast<double>(m + p - 1) * block));
  }
}

// Eight stages lie on each of two nodes, and each node sends half of all gradients: 2 bytes for
// each of gpt2-xl's 1,638 M parameters, with the embedding counted twice. The one NIC has 1 Gbit/s.
TEST_CASE("least step: the gradients of all stages of a node pass its NICs") {
  LayoutCase of{.dp = 2, .pp = 8, .micro_batches = 1};
  TrainingPlan training = layout_training(of);
  parallel::ParallelLayout& layout = training.parallelism->layout;
  layout.order = parallel::parse_order("tp-cp-ep-pp-dp", {});
  training.cluster = std::make_shared<const Cluster>(load_cluster(
      training.cluster->origin,
      {{"nic.count", "1"}, {"nic.nominal", "1 Gbit/s"}, {"nic.bandwidth", "1 Gbit/s"}}));
  const DistinctStep step{StepKind::uniform, 1024, 1};
  CollectiveCosts costs;
  const Duration least = least_step_time(training, step, costs);
  CHECK(least.s() == Approx(1638e6 * gradient_bytes(training) / 2 / (1e9 / 8)).epsilon(0.01));
  CHECK(least <= run_step(training, step, costs).metrics.step_time);
}

}  // namespace
}  // namespace lambcast
