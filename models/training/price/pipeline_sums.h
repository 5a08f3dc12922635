// What the ranks of each stage of a pipeline do in a whole step: its chunks' passes over all micro
// batches, added up.
#pragma once

#include <vector>

#include "models/training/price/pass_price.h"

namespace lambcast {

// Of chunks priced already; `wires` of one micro batch through each.
void sum_up(const parallel::Pipeline& pipeline, const std::vector<Wire>& wires,
            PipelinePrice& price);

}  // namespace lambcast
