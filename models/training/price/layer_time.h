// Time of one micro batch in a block, forward and backward, as papers report the time of a layer.
// It is the time of the step's passes (pass_price.h) without the kernels outside the blocks and
// without the stream of sharded weights, which runs ahead of its block. Recomputation is part of
// the backward pass. If blocks differ (some with experts), it is the mean over the first chunk.
#pragma once

#include <optional>

#include "models/training/plan/training_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/interval.h"

namespace lambcast {

struct LayerTime {
  Duration forward, backward;
  Interval forward_interval, backward_interval;
};

// Returns the time of a layer in the first steps of the run; nothing without a layout, because then
// blocks are not priced separately.
std::optional<LayerTime> layer_time(const TrainingPlan& training, CollectiveCosts& costs);

}  // namespace lambcast
