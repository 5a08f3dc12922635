// One optimizer step: planned (step_plan.h), priced (price.h), executed (execute.h) and accounted
// for (account.h).
#pragma once

#include <chrono>
#include <optional>

#include "models/training/price/collective_costs.h"
#include "models/training/run/account.h"

namespace lambcast {

// Plan and execution of a step, for traces and explanations, and the program's own run time of each
// part.
struct StepRun {
  StepPlan plan;
  std::vector<Price> prices;
  Execution execution;
  StepMetrics metrics;
  struct Spent {
    std::chrono::nanoseconds plan{}, price{}, execute{}, account{};
  } spent;
};

StepRun run_step(const TrainingPlan& training, const DistinctStep& step, CollectiveCosts& costs,
                 Intervals intervals = Intervals::found, CostSources* sources = nullptr);

// Returns the step without its interval, or nothing if it lasts longer than `limit_us`. On a
// shared network, most longer steps are recognised by their time without contention, which is much
// cheaper to compute.
std::optional<StepRun> run_step_within(double limit_us, const TrainingPlan& training,
                                       const DistinctStep& step, CollectiveCosts& costs);

}  // namespace lambcast
