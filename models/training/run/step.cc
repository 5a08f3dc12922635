#include "models/training/run/step.h"

#include <utility>

#include "models/training/run/shared_step.h"

namespace lambcast {

StepRun run_step(const TrainingPlan& training, const DistinctStep& distinct, CollectiveCosts& costs,
                 Intervals intervals, CostSources* sources) {
  if (distinct.gas != 0 && distinct.gas != training.batch.gas)
    return run_step(in_step(training, distinct), distinct, costs, intervals, sources);
  StepRun step;
  auto last = std::chrono::steady_clock::now();
  const auto since_last = [&] {
    const auto before = std::exchange(last, std::chrono::steady_clock::now());
    return last - before;
  };
  step.plan = plan_step(training, distinct);
  step.spent.plan = since_last();
  step.prices = price(step.plan, training, costs, intervals, sources);
  step.spent.price = since_last();
  // Without a layout a rank makes one call at a time: nothing meets.
  const bool meet = training.parallelism && training.network == NetworkModel::flow;
  step.execution = meet ? execute_shared(step.plan, step.prices, training, costs, intervals)
                        : execute(step.plan, step.prices, intervals);
  step.spent.execute = since_last();
  step.metrics = account(step.plan, step.prices, step.execution);
  step.spent.account = since_last();
  return step;
}

}  // namespace lambcast
