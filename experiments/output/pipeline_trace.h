// Draws the passes of a step under a layout as slices, for each stage:
//
//   compute                the slots of its schedule, micro batch by micro batch
//   layers                 the blocks of a slot in the order that they run, in equal shares
//   collectives of passes  collectives of tensor, context and expert parallelism and of shared
//                          weights inside a slot, after their block; shortened if the computation
//                          hides more of them
//   sent, received         activations to the next stage and gradients to the previous one, as
//                          separate threads
//
// Arrows lead from a slot to its send and on to the slot that waited for it.
#pragma once

#include <vector>

#include "experiments/output/trace_args.h"
#include "experiments/output/trace_events.h"
#include "models/training/run/step.h"

namespace lambcast {

// Returns whether the slots are few enough for viewers.
bool has_traced_slots(const StepPlan& plan);

// Draws the slots of `step`. Precondition: has_traced_slots().
void trace_pipeline(const TrainingPlan& training, const StepRun& step, CollectiveCosts& costs,
                    TraceEvents& events);

}  // namespace lambcast
