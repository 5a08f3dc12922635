// Judges one candidate of a search (layout_search.h): finds the first check that rejects it,
// cheapest first, or a lower bound of its step time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "experiments/search/layout_space.h"
#include "models/training/price/collective_costs.h"
#include "models/training/run/step.h"

namespace lambcast {

// Reason if resolve() rejects the candidate. Other reasons are "batch", "micro-batches", "memory",
// "host-memory" and the codes of models/parallel/layout_rules.h.
inline constexpr const char* refused_by_resolve = "refused";

struct Judged {
  std::optional<Duration> least;  // lower bound of its step time, if it runs
  std::string reason;             // empty if it runs
  std::string example;            // error message
};

// Judges candidates; each thread has its own.
class LayoutJudge {
 public:
  LayoutJudge(const LayoutSpace& space, std::shared_ptr<DescriptionTexts> texts)
      : space_(space), catalog_(std::move(texts)) {}

  Judged judge(const LayoutCandidate& candidate);

  // Returns a lower bound of the step time: a block's kernels, times the micro batches and the
  // blocks of the fullest stage. Candidates that differ in other settings share the time of a
  // block, so few of them are resolved. Nothing for a candidate that is illegal or refused.
  std::optional<Duration> least_of_blocks(const LayoutCandidate& candidate);

  // Returns the step time of a candidate that runs, or nothing if it exceeds a limit; the
  // compressed step for 1-bit optimizers.
  std::optional<double> step_time_us(const LayoutCandidate& candidate, double limit_us);
  StepRun step(const TrainingPlan& training, Intervals intervals);

  Catalog& catalog() { return catalog_; }

 private:
  std::optional<Judged> illegal(const LayoutCandidate& candidate) const;
  parallel::PipelineSchedule schedule_of(const LayoutCandidate& candidate) const;

  // Settings that determine the time of a block: tp, cp, ep, etp, micro batch, recomputation,
  // sequence parallelism.
  using BlockSettings = std::tuple<int, int, int, int, std::int64_t, std::string, std::string>;

  const LayoutSpace& space_;
  std::map<BlockSettings, Duration> blocks_;
  Catalog catalog_;
  CollectiveCosts costs_;
};

}  // namespace lambcast
