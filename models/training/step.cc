#include "models/training/step.h"

#include "models/training/shared_step.h"

namespace lambcast {

StepRun run_step(const TrainingPlan& training, const Stage& stage, CollectiveCosts& costs,
                 Intervals intervals, CostSources* sources) {
  StepRun step;
  step.plan = plan_step(training, stage);
  step.prices = price(step.plan, training, costs, intervals, sources);
  // Without a layout a rank makes one call at a time: nothing meets.
  const bool meet = training.parallelism && training.network == NetworkModel::flow;
  step.execution = meet ? execute_shared(step.plan, step.prices, training, costs, intervals)
                        : execute(step.plan, step.prices, intervals);
  step.metrics = account(step.plan, step.prices, step.execution);
  return step;
}

}  // namespace lambcast
