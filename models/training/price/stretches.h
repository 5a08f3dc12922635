// Ends of the segments of a stage's passes (StageWork) in a replay of the pipeline.
//
// The first segment ends with the stage's first micro batch forward, the next when a chunk's
// gradients may be reduced, and the last with the stage. They are measured from the start of the
// step; in zero-bubble schedules, whose stages step separately, from the start of the stage's first
// pass.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "models/training/price/pass_price.h"
#include "models/training/price/price.h"

namespace lambcast {

Duration stretch_end(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

Duration stretch_time(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

// Returns the total time of all segments of a stage.
Duration stretches_time(const PipelinePlan& plan, const PipelinePrice& price, int stage);

// Prices of a pipeline with its inputs at the ends of their intervals: all computations, all
// collectives, and the collectives of each kind alone. In pipelines of more than a million passes
// all collectives err together, as the kind with the widest interval.
class PassesAtEnds {
 public:
  // Returns the price at an end, where only collectives of one kind err if a kind is given.
  using PriceAt = std::function<PipelinePrice(End, std::optional<CallKind>)>;
  // Error of one call: the width of its interval, and c (price.h).
  struct CallError {
    Duration width;
    double c = 0;
  };

  PassesAtEnds() = default;
  // Without intervals, only the expected price is found.
  PassesAtEnds(const PipelinePlan& plan, Intervals intervals, const PriceAt& price_at,
               const std::function<CallError(const Call&)>& error_of);

  const PipelinePrice& expected() const { return at_[0]; }
  // Sets the intervals of a segment.
  void set_intervals(const StageWork& work, Price& price) const;

 private:
  struct OfKind {
    CallKind kind;
    double width_s = 0, c = 0;  // sum over calls, and their mean weighted with it
    PipelinePrice low, high;    // empty if there is one kind alone
  };

  const PipelinePlan* plan_ = nullptr;
  std::array<PipelinePrice, all_ends.size()> at_;  // by End
  std::vector<OfKind> kinds_;                      // empty without intervals
};

// A pass of one micro batch that a stage's collectives overlap: the first forward pass or the last
// backward pass.
struct PassesBeside {
  Duration kernels;
  Duration time;  // including the exposed collectives of the passes
};
PassesBeside passes_beside(const PipelinePlan& plan, const PipelinePrice& price, int stage,
                           bool first_only);

// Replays the pipeline after prolonging each stage's passes by `longer` in total, spread evenly
// over its micro batches and passes.
PipelinePrice replayed(const PipelinePlan& plan, PipelinePrice price,
                       const std::vector<Duration>& longer);

}  // namespace lambcast
