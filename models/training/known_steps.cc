#include "models/training/known_steps.h"

#include <algorithm>
#include <utility>

namespace lambcast {
namespace {

// What tells the steps of a run apart, and how many there are of each, no step reads
// (distinct_steps.h).
TrainingPlan without_run(const TrainingPlan& training, const DistinctStep& step) {
  TrainingPlan one = in_step(training, step);
  one.steps = 1;
  one.steps_done = 0;
  one.ramp.reset();
  one.recipe.onebit = {};
  one.recipe.curriculum.reset();
  return one;
}

}  // namespace

const KnownStep& KnownSteps::of(const TrainingPlan& training, const DistinctStep& step,
                                CollectiveCosts& costs) {
  TrainingPlan plan = without_run(training, step);
  const DistinctStep one{step.kind, step.seq_len, 1, 0, step.local};
  const auto known = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return entry.step == one && entry.training == plan; });
  if (known != entries_.end()) return known->known;
  KnownStep found;
  const StepRun run = run_step(plan, one, costs, Intervals::found, &found.sources);
  found.metrics = run.metrics;
  found.time = time_at_ends(run, plan.optimizer(), plan.kernels);
  Entry entry{std::move(plan), one, std::move(found)};
  if (entries_.size() < most) return entries_.emplace_back(std::move(entry)).known;
  Entry& oldest = entries_[std::exchange(oldest_, (oldest_ + 1) % most)];
  oldest = std::move(entry);
  return oldest.known;
}

}  // namespace lambcast
