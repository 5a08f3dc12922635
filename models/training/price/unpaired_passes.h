// Passes of a pipeline that do not overlap a pass of the other direction.
//
// The forward pass of one micro batch may overlap the backward pass of another, each covering the
// other's exchanges (Megatron-LM --overlap-moe-expert-parallel-comm). The warm-up and the cool-down
// have no such pair. For the first stage, which has the most, these are the passes before its first
// backward one, and an equal number after its last forward one. Their share of all its passes is (2
// (p - 1) + (v - 1) p + 1) / (m v) when interleaved, p / m in 1F1B, 1 / m without a pipeline.
// Source: Megatron-LM core/pipeline_parallel/{schedules,combined_1f1b}.py.
#pragma once

#include "models/parallel/pipeline_schedule.h"

namespace lambcast {

double unpaired_share(const parallel::Pipeline& pipeline);

}  // namespace lambcast
