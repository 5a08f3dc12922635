// Ends of the segments of a stage's passes (StageWork) in a replay of the pipeline.
//
// The first segment ends with the stage's first micro batch forward, the next when a chunk's
// gradients may be reduced, the last with the stage. They are measured from the start of the step;
// stages that step on their own (zero-bubble schedules) start when they are ready.
#pragma once

#include <vector>

#include "models/training/price/pass_price.h"

namespace lambcast {

Duration stretch_end(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

Duration stretch_time(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work);

// Returns the total time of all segments of a stage.
Duration stretches_time(const PipelinePlan& plan, const PipelinePrice& price, int stage);

// A pass of one micro batch, next to which a stage's collectives run. It is the first forward pass
// or the last backward pass.
struct PassesBeside {
  Duration kernels;
  Duration time;  // with the exposed collectives of the passes themselves
};
PassesBeside passes_beside(const PipelinePlan& plan, const PipelinePrice& price, int stage,
                           bool first_only);

// Replays the pipeline with each stage's passes `longer` in total, spread evenly over its micro
// batches and passes.
PipelinePrice replayed(const PipelinePlan& plan, PipelinePrice price,
                       const std::vector<Duration>& longer);

}  // namespace lambcast
