#include "experiments/output/pass_efficiency.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/output/metric.h"
#include "experiments/scenario/scenario_case.h"
#include "models/training/price/measured_program.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

// 4 stages of 6 blocks on 16 A100s.
WhatIf piped(const WhatIf& changes = {}) {
  WhatIf what_if = with({{"optimizer", "lamb"},
                         {"cluster", "dgx-a100-80g"},
                         {"gpus", "16"},
                         {"global_batch", "1024"},
                         {"pp", "4"}},
                        without({"freeze_step"}));
  return with(changes, what_if);
}

struct Efficiency {
  TrainingPlan training;
  double step_s = 0;
  MetricValue value{};

  explicit Efficiency(const WhatIf& what_if) : training(resolved(what_if).training) {
    CollectiveCosts costs;
    const Forecast of = forecast(training, costs);
    step_s = of.run.time_s / static_cast<double>(of.run.steps);
    value = *find_metric("efficiency", {}).of(training, of);
  }
};

TEST_CASE("pass efficiency: the slow end of computation has the effect of a slower GPU") {
  const Efficiency of(piped());
  const double width = width_of_passes(of.training).log;
  const double scale = of.training.cluster->stack.compute_scale.value;
  for (const auto& [end, factor] :
       {std::pair{End::compute_high, std::exp(width)}, {End::compute_low, std::exp(-width)}}) {
    const Efficiency other(
        piped({{"cluster.stack.compute_scale", fmt::format("{}", scale * factor)}}));
    CHECK(efficiency_with_passes_at(end, of.training, of.value.value, of.step_s) ==
          Approx(other.value.value).epsilon(1e-3));
  }
}

TEST_CASE("pass efficiency: a layout's share has an interval, wider with more communication") {
  const auto width = [](const WhatIf& changes) {
    const Efficiency of(piped(changes));
    REQUIRE(of.value.low.has_value());
    CHECK(*of.value.low < of.value.value);
    CHECK(*of.value.high > of.value.value);
    CHECK(*of.value.high <= 1);
    return std::log(*of.value.high / *of.value.low);
  };
  CHECK(width({{"tp", "4"}}) > width({}));
}

TEST_CASE("pass efficiency: one GPU loses nothing at any error") {
  const Efficiency alone(
      piped({{"gpus", "1"}, {"pp", "1"}, {"recompute", "full"}, {"global_batch", "64"}}));
  CHECK(alone.value.value == Approx(1).epsilon(1e-9));
  CHECK(*alone.value.low == Approx(1).epsilon(1e-6));
  CHECK(*alone.value.high == Approx(1).epsilon(1e-9));
}

}  // namespace
}  // namespace lambcast
