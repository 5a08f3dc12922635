#include "experiments/output/measure_first.h"

#include <catch2/catch.hpp>

#include "experiments/compare/sensitivity.h"
#include "experiments/compare/sensitivity_output.h"
#include "experiments/scenario/scenario_case.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::size_t all_reduce_over_nccl() {
  for (std::size_t source = 0; source < error_sources; ++source)
    if (const auto call = measured_call(source);
        call && call->op == Op::all_reduce && call->backend == Backend::nccl)
      return source;
  FAIL("all_reduce over nccl is no source of error");
  return 0;
}

// Returns a run of LAMB on 16 nodes of 4 GPUs, with one all_reduce of all gradients. Its cluster is
// calibrated on logs of these ranges.
TrainingPlan calibrated(Calibration::Range sizes, Calibration::Range nodes, bool another = false,
                        Op op = Op::all_reduce) {
  TrainingPlan training = resolved(without({"freeze_step"}, {{"optimizer", "lamb"}})).training;
  Cluster cluster = *training.cluster;
  Calibration calibration;
  calibration.operations = {op};
  calibration.sizes = sizes;
  calibration.layouts = {{4, nodes}};
  calibration.bands = {{Bytes(1e300), 0.9, 1.1}};
  calibration.another_machine = another;
  cluster.calibration = calibration;
  training.cluster = std::make_shared<const Cluster>(cluster);
  return training;
}

std::string advised(Calibration::Range sizes, Calibration::Range nodes, bool another = false,
                    Op op = Op::all_reduce) {
  return measurement_for(all_reduce_over_nccl(), calibrated(sizes, nodes, another, op));
}

TEST_CASE("measure first: after a calibration only the calls missing from its logs are named") {
  CHECK(advised({1, 1e10}, {1, 16}).empty());
  CHECK_THAT(advised({1, 1e6}, {1, 16}), Contains("lack sizes of") && !Contains("nodes with"));
  CHECK_THAT(advised({1, 1e10}, {1, 8}),
             Contains("lack 16 nodes with 4 GPUs each") && !Contains("sizes of"));
  CHECK_THAT(advised({1, 1e6}, {1, 8}), Contains("lack sizes of") && Contains(" and 16 nodes"));
  CHECK_THAT(advised({1, 1e10}, {1, 16}, false, Op::broadcast), Contains("on 16 nodes with"));
  // Tables of another machine do not count as measurements of this one.
  CHECK_THAT(advised({1, 1e10}, {1, 16}, true), Contains("lambcast measure") && !Contains("lack"));
}

TEST_CASE("measure first: for several runs each missing measurement is named once") {
  const auto of = [](const std::vector<TrainingPlan>& trainings) {
    std::vector<const TrainingPlan*> all;
    for (const TrainingPlan& training : trainings) all.push_back(&training);
    return measurement_for(all_reduce_over_nccl(), all);
  };
  const TrainingPlan whole = calibrated({1, 1e10}, {1, 16}), few = calibrated({1, 1e10}, {1, 8});
  CHECK(of({whole, whole}).empty());
  CHECK(of({whole, few, few}) == of({few}));
  CHECK_THAT(of({few}), Contains("lack 16 nodes with 4 GPUs each") && !Contains(" and 16 nodes"));
  CHECK_THAT(of({few, calibrated({1, 1e10}, {1, 16}, true)}), !Contains("lack"));
}

TEST_CASE("measure first: sensitivity omits measurements that the logs contain completely") {
  Catalog catalog;
  Sensitivity sensitivity =
      sensitivity_of(without({"freeze_step"}, {{"optimizer", "lamb"}}), 0.05, catalog);
  const std::size_t source = all_reduce_over_nccl();
  std::erase_if(sensitivity.parts, [&](const auto& part) { return part.source != source; });
  REQUIRE(sensitivity.to_measure() != nullptr);
  const auto table_after = [&](const TrainingPlan& training) {
    sensitivity.scenario.training = training;
    return sensitivity_table(sensitivity);
  };
  CHECK_THAT(table_after(calibrated({1, 1e10}, {1, 16})),
             !Contains("easure first") && !Contains("lambcast calibrate") &&
                 Contains("all_reduce over nccl (measured)"));
  CHECK_THAT(table_after(calibrated({1, 1e10}, {1, 8})),
             Contains("To measure first: ") && Contains("lack 16 nodes with 4 GPUs each"));
}

}  // namespace
}  // namespace lambcast
