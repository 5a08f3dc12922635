// Lower bound of a step's time under a layout, for searches that look for the few fastest among
// thousands of layouts. It includes the kernels of the blocks and the exposed exchanges of experts'
// tokens. It leaves out other collectives, the head, the optimizer and a replay of the pipeline.
//
// A stage computes m micro batches in its chunks. Before its first slot, one micro batch passes the
// positions before it; after its last slot, one passes them backward. With t_i the time of the
// blocks of position i, forward and backward, and C_s the positions of stage s:
//
//   step >= max over s of  m sum(t_i, i in C_s) + sum(t_i, i < s)
//
// The second sum is left out if the backward pass is split, since stages then end separately.
//
// When gradients of S bytes are summed over n nodes, each node sends at least (n - 1) / n S. The
// gradients of all stages and ranks of a node pass its NICs, whose limit (topologies/nic_limit.h)
// gives another bound.
#pragma once

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/training_plan.h"
#include "models/training/price/collective_costs.h"

namespace lambcast {

// Returns the lower bound; zero if the blocks of the model differ (images).
Duration least_step_time(const TrainingPlan& training, const DistinctStep& step,
                         CollectiveCosts& costs);

// Returns the least time of the kernels of a block, forward and backward: that of blocks with
// experts if all have them. Zero if the blocks of the model differ.
Duration least_block_time(const TrainingPlan& training, const DistinctStep& step);

}  // namespace lambcast
