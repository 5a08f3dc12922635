// Totals per rank of each pipeline stage in a whole step: its chunks' passes over all micro
// batches.
#pragma once

#include <vector>

#include "models/training/price/pass_price.h"

namespace lambcast {

// Adds up the prices of all chunks of a stage; `wires` are the loads of one micro batch in each
// chunk.
void sum_up(const parallel::Pipeline& pipeline, const std::vector<Wire>& wires,
            PipelinePrice& price);

}  // namespace lambcast
