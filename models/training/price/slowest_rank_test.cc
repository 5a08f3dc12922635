#include "models/training/price/slowest_rank.h"

#include <catch2/catch.hpp>

#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

// The largest of 64 numbers is 2.34 standard deviations above their mean (tables of order
// statistics, Harter 1961). The spread between micro batches averages out between two sums; the
// spread between GPUs does not.
TEST_CASE("slowest rank: a step computes as long as its slowest rank") {
  CHECK(expected_largest_of(1) == 0);
  CHECK(expected_largest_of(2) == Approx(0.5642).epsilon(0.05));
  CHECK(expected_largest_of(64) == Approx(2.34).epsilon(0.01));
  TrainingPlan training = layout_training({.dp = 64, .micro_batches = 4});
  CHECK(slowest_over_mean(training) == 1);
  CollectiveCosts costs;
  const auto forward = [&] {
    return run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.forward.s();
  };
  const double even = forward();
  const auto spread = [&](double micro_batches, double gpus) {
    Cluster uneven = *training.cluster;
    uneven.stack.compute_spread.value = micro_batches;
    uneven.stack.gpu_spread.value = gpus;
    training.cluster = std::make_shared<const Cluster>(uneven);
    CHECK(forward() == Approx(even * slowest_over_mean(training)).epsilon(1e-6));
    return slowest_over_mean(training);
  };
  CHECK(spread(0.1, 0) == Approx(1 + 0.1 / 2 * expected_largest_of(64)));
  CHECK(spread(0, 0.1) == Approx(1 + 0.1 * expected_largest_of(64)));
  CHECK(spread(0.1, 0.1) == Approx(spread(0.1, 0) * spread(0, 0.1)));
}

}  // namespace
}  // namespace lambcast
