// Steps that were run, remembered: points of a sweep that differ in how long the run is, or in when
// it freezes, have the same steps, and the plain run beside each has them as well.
#pragma once

#include <cstddef>
#include <vector>

#include "models/training/cost_source.h"
#include "models/training/error_source.h"

namespace lambcast {

// What a forecast of the run asks of a step.
struct KnownStep {
  StepMetrics metrics;
  TimeAtEnds time;
  CostSources sources;
};

// One per thread. A step is known by all that running it can read: by a plan from which the length
// of the run and its schedules are gone, of the same model, cluster and device in memory.
class KnownSteps {
 public:
  // Valid until the next call. Throws what run_step does.
  const KnownStep& of(const TrainingPlan& training, const DistinctStep& step,
                      CollectiveCosts& costs);

 private:
  // Those of some points: kinds of steps times lengths and batches, for each run that is compared.
  // A curriculum of more lengths finds none of them again.
  static constexpr std::size_t most = 32;
  struct Entry {
    TrainingPlan training;
    DistinctStep step;
    KnownStep known;
  };
  std::vector<Entry> entries_;
  std::size_t oldest_ = 0;  // where all places are taken
};

}  // namespace lambcast
