#include "models/training/run/known_runs.h"

#include <algorithm>
#include <utility>

namespace lambcast {
namespace {

// Removes the inputs that only distinct_steps() reads: they determine the kinds and numbers of
// steps, but neither the time nor the memory of one step. The result is the plan that is run.
TrainingPlan without_length(const TrainingPlan& training) {
  TrainingPlan run = training;
  run.steps = 1;
  run.steps_done = 0;
  run.ramp.reset();
  run.recipe.onebit = {};
  run.recipe.curriculum.reset();
  run.recipe.projection.update_proj_gap = 0;
  run.exchange.start = 0;
  return run;
}

// Adds an element; replaces the oldest one if there are `most` already.
template <typename T>
T& keep(T added, std::size_t most, std::vector<T>& kept, std::size_t& oldest) {
  if (kept.size() < most) return kept.emplace_back(std::move(added));
  return kept[std::exchange(oldest, (oldest + 1) % most)] = std::move(added);
}

}  // namespace

const KnownStep& KnownRun::step(const DistinctStep& step, CollectiveCosts& costs, Sources sources) {
  const DistinctStep one{step.kind, step.seq_len, 1, step.gas, step.local};
  const auto known = std::ranges::find(steps_, one, &Step::step);
  const bool is_known = known != steps_.end();
  if (is_known && (known->known.sources != nullptr || sources == Sources::left_out))
    return known->known;
  KnownStep found;
  const auto noted = sources == Sources::noted ? std::make_shared<CostSources>() : nullptr;
  const StepRun run = run_step(plan_, one, costs, Intervals::found, noted.get());
  found.sources = noted;
  found.metrics = run.metrics;
  found.time = time_at_ends(run, plan_);
  if (is_known) return known->known = std::move(found);
  return keep({one, std::move(found)}, most, steps_, oldest_).known;
}

const MemoryForecast& KnownRun::memory() {
  if (!memory_) memory_ = forecast_memory(plan_);
  return *memory_;
}

KnownRun& KnownRuns::of(const TrainingPlan& training) {
  TrainingPlan plan = without_length(training);
  if (clusters_.size() >= most_clusters && !clusters_.contains(plan.cluster)) clusters_.clear();
  auto& [runs, oldest] = clusters_[plan.cluster];
  const auto known = std::ranges::find(runs, plan, &KnownRun::plan);
  if (known != runs.end()) return *known;
  return keep(KnownRun(std::move(plan)), most, runs, oldest);
}

KnownRuns& known_runs(CollectiveCosts& costs) {
  if (costs.runs() == nullptr) costs.runs() = std::make_shared<KnownRuns>();
  return *costs.runs();
}

}  // namespace lambcast
