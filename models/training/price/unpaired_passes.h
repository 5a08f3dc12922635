// Passes of a pipeline that have no pass of the other direction beside them.
//
// Where the forward pass of one micro batch runs beside the backward pass of another and each
// covers the other's exchanges (Megatron-LM --overlap-moe-expert-parallel-comm), the warm-up and
// the cool-down have none to cover theirs: of the first stage, which holds most, the passes before
// its first backward one, and as many after its last forward one. Their share of all its passes is
// (2 (p - 1) + (v - 1) p + 1) / (m v) when interleaved, p / m in 1F1B, 1 / m without a pipeline.
// Source: Megatron-LM core/pipeline_parallel/{schedules,combined_1f1b}.py.
#pragma once

#include "models/parallel/pipeline_schedule.h"

namespace lambcast {

double unpaired_share(const parallel::Pipeline& pipeline);

}  // namespace lambcast
