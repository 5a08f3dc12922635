#include "models/training/run/step.h"

#include <algorithm>
#include <utility>

#include "models/training/run/shared_step.h"

namespace lambcast {
namespace {

// Reduces the job to the largest smaller number of copies that does not split groups that share
// experts, states or a site. Returns false if there is none.
bool take_fewer_copies(TrainingPlan& training) {
  Parallelism& how = *training.parallelism;
  const int copies = how.layout.dp;
  const bool all_share = how.shard_ranks == how.replicas();
  const auto is_whole = [&](int fewer) {
    how.layout.dp = fewer;
    const int ranks = how.replicas();
    return copies % fewer == 0 &&
           how.layout.tp * ranks % (how.layout.expert_tp() * how.layout.ep) == 0 &&
           (all_share || ranks % how.shard_ranks == 0) && ranks % how.secondary_ranks == 0 &&
           ranks % site_ranks(training.exchange) == 0;
  };
  int fewer = copies / 2;
  while (fewer > 0 && !is_whole(fewer)) --fewer;
  if (fewer == 0) return false;
  if (all_share) how.shard_ranks = how.replicas();
  training.gpus = static_cast<int>(how.layout.world());
  training.batch.train = training.batch.train / copies * fewer;
  return true;
}

// Finds the effect of the shared network on the step of the largest smaller job that can be
// simulated there. Contention in a fabric of equal leaves hardly depends on their number: a step of
// GPT-3 with tp 8 and pp 16 over a 4:1 tree takes 1.010 times the closed form from 4,096 to
// 32,768 GPUs.
StandIn find_stand_in(TrainingPlan training, const DistinctStep& distinct, CollectiveCosts& costs) {
  while (take_fewer_copies(training)) {
    const StepPlan plan = plan_step(training, distinct);
    const std::vector<Price> prices = price(plan, training, costs, Intervals::left_out);
    const auto shared = execute_shared(plan, prices, training, costs, Intervals::left_out);
    if (!shared) continue;
    const auto lasts = [](const Execution& run) { return run.timeline.end.since_start(); };
    return {training.gpus, lasts(*shared) / lasts(execute(plan, prices, Intervals::left_out))};
  }
  return {};
}

// Runs a step that is too large for the shared network in streams. Its interval is widened by the
// effect of the shared network on the stand-in.
Execution execute_on_network(const StepRun& step, const TrainingPlan& training,
                             const DistinctStep& distinct, CollectiveCosts& costs,
                             Intervals intervals) {
  if (auto shared = execute_shared(step.plan, step.prices, training, costs, intervals))
    return *std::move(shared);
  Execution execution = execute(step.plan, step.prices, intervals);
  const StandIn stand_in = find_stand_in(training, distinct, costs);
  Interval& interval = execution.interval;
  interval.low = interval.low.scaled(std::min(1.0, stand_in.growth));
  interval.high = interval.high.scaled(std::max(1.0, stand_in.growth));
  execution.stand_in = stand_in;
  return execution;
}

// Returns the elapsed time since the last call or creation.
class Lap {
 public:
  std::chrono::nanoseconds next() {
    const auto before = std::exchange(last_, std::chrono::steady_clock::now());
    return last_ - before;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

StepRun planned(const TrainingPlan& training, const DistinctStep& distinct, CollectiveCosts& costs,
                Intervals intervals, CostSources* sources) {
  StepRun step;
  Lap lap;
  step.plan = plan_step(training, distinct);
  step.spent.plan = lap.next();
  step.prices = price(step.plan, training, costs, intervals, sources);
  step.spent.price = lap.next();
  return step;
}

// Without a layout a rank makes one call at a time, so there is no contention.
bool shares_network(const TrainingPlan& training) {
  return training.parallelism && training.network == NetworkModel::flow;
}

void execute_planned(StepRun& step, const TrainingPlan& training, const DistinctStep& distinct,
                     CollectiveCosts& costs, Intervals intervals) {
  Lap lap;
  step.execution = shares_network(training)
                       ? execute_on_network(step, training, distinct, costs, intervals)
                       : execute(step.plan, step.prices, intervals);
  step.spent.execute = lap.next();
  step.metrics = account(step.plan, step.prices, step.execution);
  step.spent.account = lap.next();
}

}  // namespace

StepRun run_step(const TrainingPlan& training, const DistinctStep& distinct, CollectiveCosts& costs,
                 Intervals intervals, CostSources* sources) {
  if ((distinct.gas != 0 && distinct.gas != training.batch.gas) ||
      precedes_exchange(training, distinct))
    return run_step(in_step(training, distinct), distinct, costs, intervals, sources);
  StepRun step = planned(training, distinct, costs, intervals, sources);
  execute_planned(step, training, distinct, costs, intervals);
  return step;
}

std::optional<StepRun> run_step_within(double limit_us, const TrainingPlan& training,
                                       const DistinctStep& distinct, CollectiveCosts& costs) {
  StepRun step = planned(training, distinct, costs, Intervals::left_out, nullptr);
  if (shares_network(training) && time_without_contention(step.plan, step.prices).us() > limit_us)
    return std::nullopt;
  execute_planned(step, training, distinct, costs, Intervals::left_out);
  if (step.metrics.step_time.us() > limit_us) return std::nullopt;
  return step;
}

}  // namespace lambcast
