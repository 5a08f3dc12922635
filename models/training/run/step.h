// One optimizer step: planned (step_plan.h), priced (price.h), executed (execute.h) and accounted
// for (account.h).
#pragma once

#include <chrono>

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

}  // namespace lambcast
