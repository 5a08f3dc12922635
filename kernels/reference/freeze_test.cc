#include "kernels/reference/freeze.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::reference;

namespace {

const TensorLayout tensors = tensor_layout(std::vector<std::size_t>{90, 10});

// Returns the step that may freeze if tensor t's norm is norm(t, step); 0: none in 200.
template <typename Norm>
int frozen_step(const FreezeOptions& options, Norm norm) {
  FreezeMonitor monitor = freeze_monitor(tensors, options);
  for (int step = 1; step <= 200; ++step) {
    if (!measures(monitor, step)) continue;
    const std::vector<double> norms{norm(0, step), norm(1, step)};
    if (may_freeze(monitor, step, norms)) break;
  }
  return monitor.frozen_at;
}

}  // namespace

TEST_CASE(
    "compression may begin when the variance changed by less than the threshold over D steps") {
  // D = 10. For a variance that decreases as 1 + c 0.9^k, the ratio to ten steps before first
  // reaches 0.96 when (1 + x) / (1 + x / 0.9^10) >= 0.96 with x = 5 0.9^k: x <= 0.0228, k = 52.
  const FreezeOptions options{.beta2 = 0.9};
  const auto falls = [](int, int step) { return 1 + 5 * std::pow(0.9, step); };
  CHECK(frozen_step(options, falls) == 52);
  // An increase at the same rate settles when the reciprocal is within the threshold, not
  // immediately.
  CHECK(frozen_step(options, [&](int t, int step) { return 1 / falls(t, step); }) == 52);
  // A constant variance settles at 2 D, or when the warm-up of the rate ends.
  CHECK(frozen_step(options, [](int, int) { return 3.0; }) == 20);
  CHECK(frozen_step({.beta2 = 0.9, .earliest = 33}, [](int, int) { return 3.0; }) == 33);
  // A tensor without gradients counts as settled; if no tensor has gradients, none do.
  CHECK(frozen_step(options, [](int t, int) { return t == 0 ? 0.0 : 3.0; }) == 20);
  CHECK(frozen_step(options, [](int, int) { return 0.0; }) == 0);
  // A variance that never settles.
  CHECK(frozen_step(options, [](int, int step) { return std::pow(0.98, step); }) == 0);
}

TEST_CASE(
    "a variance that never settles is frozen at the latest step, one that settles before it") {
  const auto moves = [](int, int step) { return std::pow(0.98, step); };
  CHECK(frozen_step({.beta2 = 0.9, .latest = 70}, moves) == 70);
  CHECK(frozen_step({.beta2 = 0.9, .interval = 4, .latest = 70}, moves) == 72);
  CHECK(frozen_step({.beta2 = 0.9, .latest = 70}, [](int, int) { return 3.0; }) == 20);
  CHECK_THROWS_WITH(freeze_monitor(tensors, {.latest = -1}), "latest: must be at least 0");
}

TEST_CASE("the tensors that hold the share decide, and measurements may be rare") {
  const auto small_one_moves = [](int t, int step) { return t == 0 ? 1.0 : std::pow(0.9, step); };
  CHECK(frozen_step({.beta2 = 0.9, .share = 0.9}, small_one_moves) == 20);
  CHECK(frozen_step({.beta2 = 0.9, .share = 0.91}, small_one_moves) == 0);
  const auto falls = [](int, int step) { return 1 + 5 * std::pow(0.9, step); };
  // Every fourth step: compared with 12 steps before.
  CHECK(frozen_step({.beta2 = 0.9, .interval = 4}, falls) == 56);
}

TEST_CASE("the norms of the variance, and invalid options") {
  std::vector<float> v(100, 0.5f);
  v[95] = 2;
  CHECK(variance_norms(v, tensors) == std::vector<double>{45, 6.5});
  const auto made = [](const FreezeOptions& options) { freeze_monitor(tensors, options); };
  CHECK_THROWS_WITH(made({.threshold = 1}), "threshold: must be between 0 and 1");
  CHECK_THROWS_WITH(made({.beta2 = 1}), "beta2: must be from 0 to below 1");
  CHECK_THROWS_WITH(made({.interval = 0}), "interval: must be at least 1");
  CHECK_THROWS_WITH(made({.share = 0}), "share: must be from above 0 to 1");
}
