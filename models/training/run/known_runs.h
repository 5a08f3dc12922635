// Cache of results of a run that do not depend on its length. Points of a sweep that differ in
// their number of steps, or in the freeze step, have the same distinct steps and memory, and so do
// their baselines.
#pragma once

#include <cstddef>
#include <map>
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
  std::shared_ptr<const CostSources> sources;  // null until requested
};

enum class Sources { noted, left_out };

// Cached steps of a run. Its key is the plan without length and schedules; model, cluster and
// device are compared by address.
class KnownRun {
 public:
  explicit KnownRun(TrainingPlan without_length) : plan_(std::move(without_length)) {}
  const TrainingPlan& plan() const { return plan_; }

  // Returns the results of a step, which are valid until the next call. Throws the errors of
  // run_step().
  const KnownStep& step(const DistinctStep& step, CollectiveCosts& costs, Sources sources);
  const MemoryForecast& memory();

 private:
  // Limit of cached steps: kinds times lengths and batches. A longer curriculum reuses none of
  // them.
  static constexpr std::size_t most = 32;
  struct Step {
    DistinctStep step;
    KnownStep known;
  };
  TrainingPlan plan_;
  std::vector<Step> steps_;
  std::size_t oldest_ = 0;  // index to replace if the cache is full
  std::optional<MemoryForecast> memory_;
};

// Cache of runs, one per thread, stored with the costs that the runs were forecast with.
class KnownRuns {
 public:
  // Returns the cached run, which is valid until the next call.
  KnownRun& of(const TrainingPlan& training);

 private:
  // A point of a sweep compares two or three runs. In a grid the same baselines recur with the next
  // value of another key, on each cluster.
  static constexpr std::size_t most = 8, most_clusters = 256;
  struct OfCluster {
    std::vector<KnownRun> runs;
    std::size_t oldest = 0;
  };
  std::map<std::shared_ptr<const Cluster>, OfCluster> clusters_;
};

// Returns the runs that were forecast with `costs`.
KnownRuns& known_runs(CollectiveCosts& costs);

}  // namespace lambcast
