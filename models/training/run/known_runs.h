// Cache of results of a run that do not depend on its length. Points of a sweep that differ in
// their number of steps, or in the freeze step, have the same distinct steps and memory, and so do
// their baselines.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "models/training/memory/memory.h"
#include "models/training/price/cost_source.h"
#include "models/training/run/error_source.h"

namespace lambcast {

// Results of a step that the forecast of a run needs.
struct KnownStep {
  StepMetrics metrics;
  TimeAtEnds time;
  std::shared_ptr<const CostSources> sources;  // null: not requested yet
};

enum class Sources { noted, left_out };

// A run is known by all that running a step of it can read: by a plan from which its length and
// its schedules are gone, of the same model, cluster and device in memory.
class KnownRun {
 public:
  explicit KnownRun(TrainingPlan without_length) : plan_(std::move(without_length)) {}
  const TrainingPlan& plan() const { return plan_; }

  // Valid until the next call. Throws what run_step does.
  const KnownStep& step(const DistinctStep& step, CollectiveCosts& costs, Sources sources);
  const MemoryForecast& memory();

 private:
  // Kinds of steps times lengths and batches. A longer curriculum finds none of its steps again.
  static constexpr std::size_t most = 32;
  struct Step {
    DistinctStep step;
    KnownStep known;
  };
  TrainingPlan plan_;
  std::vector<Step> steps_;
  std::size_t oldest_ = 0;  // where all places are taken
  std::optional<MemoryForecast> memory_;
};

// One per thread, kept with the costs that the runs were forecast with.
class KnownRuns {
 public:
  // Valid until the next call.
  KnownRun& of(const TrainingPlan& training);

 private:
  static constexpr std::size_t most = 8;  // a point compares two or three
  std::vector<KnownRun> runs_;
  std::size_t oldest_ = 0;
};

// Returns the runs that were forecast with `costs`.
KnownRuns& known_runs(CollectiveCosts& costs);

}  // namespace lambcast
