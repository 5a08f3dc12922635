#include "models/training/price/algorithm_tip.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/codes_test.h"
#include "models/training/price/cost_source.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

// Two nodes of four GH200 over TCP: a ring with LL took 1,502 us for 1 MiB, and 922 us for 2 MiB
// (measured). Here the collective takes 10 %, 1 % and nothing of the time.
TEST_CASE("judge: a collective that matters near a tip of NCCL's rule is named") {
  const auto at = [](double collective_s, double rest_s) {
    CostSources sources;
    const Duration time = Duration::seconds(collective_s);
    sources.tips({Op::all_reduce,
                  Bytes(1e6),
                  "ring",
                  "LL",
                  time,
                  {std::nullopt, Rival{"tree", "LL", time.scaled(0.6)}}},
                 1);
    sources.spend(time + Duration::seconds(rest_s));
    TrainingPlan training = training_of({OptimizerType::lamb, 16});
    Forecast forecast = forecast_of(training);
    forecast.sources = RunSources(sources);
    const auto found = codes(judge(training, forecast));
    return std::count(found.begin(), found.end(), "algorithm-tips");
  };
  CHECK(at(1, 9) == 1);
  CHECK(at(1, 99) == 0);
  CHECK(at(0, 1) == 0);
  // A step keeps the collective with the largest change over all of its calls, and so does a run.
  CostSources step;
  const Tip half{std::nullopt, Rival{"tree", "LL", Duration::seconds(0.5)}};
  step.tips({Op::all_gather, Bytes(1), "ring", "LL", Duration::seconds(1), half}, 3);
  step.tips({Op::all_reduce, Bytes(1), "ring", "LL", Duration::seconds(1), half}, 4);
  step.tips({Op::broadcast, Bytes(1), "ring", "LL", Duration::seconds(1), half}, 2);
  step.spend(Duration::seconds(1));
  RunSources run;
  run.add(std::make_shared<const CostSources>(step), 10);
  REQUIRE(run.tipping());
  CHECK(run.tipping()->op == Op::all_reduce);
}

}  // namespace
}  // namespace lambcast
