// The passes of a step under a layout as slices: of every stage
//
//   compute                the slots of its schedule, micro batch by micro batch
//   layers                 the blocks of a slot in the order that they run, in equal shares of it
//   collectives of passes  those of tensor, context and expert parallelism and of shared weights
//                          inside a slot, behind the block that they belong to; shorter than they
//                          are where they hide behind more than that
//   sent, received         activations to the next stage and gradients to the one before, each on
//                          its own
//
// with arrows from slot to send to the slot that waited for it.
#pragma once

#include <vector>

#include "experiments/output/trace_args.h"
#include "experiments/output/trace_events.h"
#include "models/training/run/step.h"

namespace lambcast {

// Whether the slots are few enough for viewers.
bool has_traced_slots(const StepPlan& plan);

// `step` has such slots.
void trace_pipeline(const TrainingPlan& training, const StepRun& step, CollectiveCosts& costs,
                    TraceEvents& events);

}  // namespace lambcast
