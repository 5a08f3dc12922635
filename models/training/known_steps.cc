#include "models/training/known_steps.h"

#include <algorithm>
#include <utility>

namespace lambcast {
namespace {

// Without what distinct_steps() alone reads: which steps a run has and how many of each, not what
// one of them does. It is this plan that is run.
TrainingPlan without_run(const TrainingPlan& training, const DistinctStep& step) {
  TrainingPlan one = in_step(training, step);
  one.steps = 1;
  one.steps_done = 0;
  one.ramp.reset();
  one.recipe.onebit = {};
  one.recipe.curriculum.reset();
  one.recipe.projection.update_proj_gap = 0;
  return one;
}

}  // namespace

const KnownStep& KnownSteps::of(const TrainingPlan& training, const DistinctStep& step,
                                CollectiveCosts& costs) {
  TrainingPlan plan = without_run(training, step);
  const DistinctStep one{step.kind, step.seq_len, 1, 0, step.local};
  const auto entry = std::ranges::find_if(
      entries_, [&](const Entry& of) { return of.step == one && of.training == plan; });
  if (entry != entries_.end()) return entry->known;
  KnownStep found;
  const StepRun run = run_step(plan, one, costs, Intervals::found, &found.sources);
  found.metrics = run.metrics;
  found.time = time_at_ends(run, plan.optimizer(), plan.kernels);
  Entry added{std::move(plan), one, std::move(found)};
  if (entries_.size() < most) return entries_.emplace_back(std::move(added)).known;
  Entry& oldest = entries_[std::exchange(oldest_, (oldest_ + 1) % most)];
  oldest = std::move(added);
  return oldest.known;
}

}  // namespace lambcast
