// Ends of the segments of a stage's passes (StageWork) in a replay of the pipeline.
//
// The first segment ends with the stage's first micro batch forward, the next when a chunk's
// gradients may be reduced, and the last with the stage. They are measured from the start of the
// step; in zero-bubble schedules, whose stages step separately, from the start of the stage's first
// pass.
#pragma once

#include <vector>

#include "models/training/price/pass_price.h"

namespace lambcast {

Duration stretch_end(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

Duration stretch_time(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

// Returns the total time of all segments of a stage.
Duration stretches_time(const PipelinePlan& plan, const PipelinePrice& price, int stage);

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
