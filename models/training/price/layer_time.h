// How long one micro batch takes in a block, forward and backward, as papers time a layer by
// itself: the passes that the step is made of (pass_price.h), less what stands outside the blocks
// and less the stream of sharded weights, which runs ahead of its block. Recomputation is part of
// the backward pass. Of blocks that differ (some with experts) the mean of the first chunk.
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

// Returns the time of a layer in the run's first steps. Absent without a layout, in which no block
// is priced by itself.
std::optional<LayerTime> layer_time(const TrainingPlan& training, CollectiveCosts& costs);

}  // namespace lambcast
