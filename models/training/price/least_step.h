// Lower bound of a step's time under a layout, for searches that compare thousands of layouts and
// need the few fastest. It is found from the kernels of a block and the exposed exchanges of its
// experts' tokens. Other collectives, head, optimizer and a replay of the pipeline are left out.
//
// A stage computes m micro batches through its chunks; before its first slot one has passed the
// positions before it, and after its last slot one passes them backward. With t_i, both ways
// through the blocks of position i, and C_s the positions of stage s:
//
//   step >= max over s of  m sum(t_i, i in C_s) + sum(t_i, i < s)
//
// Where the backward pass is split, stages end apart from one another, and the second sum is left
// out.
//
// Summed gradients of S bytes leave each of n nodes at least (n - 1) / n times. A node sends those
// of all its stages and ranks, which its NICs at their limit (topologies/nic_limit.h) bound too.
#pragma once

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/training_plan.h"
#include "models/training/price/collective_costs.h"

namespace lambcast {

// Nothing where the blocks of a model are not alike (images).
Duration least_step_time(const TrainingPlan& training, const DistinctStep& step,
                         CollectiveCosts& costs);

}  // namespace lambcast
