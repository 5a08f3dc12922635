// The second form of execute.h, for the flow model: all collectives of a step run on one network
// and share its links, instead of taking their time without contention.
//
// Calls are placed on the nodes of their ranks. Gradients of pipeline stages contend if the stages
// share a node's NICs. They also contend with the tensor-parallel collectives and the exchanges of
// tokens, keys and activations of overlapping passes. The latter are spread evenly over each
// segment of a stage's passes. A segment that lasts T without contention, of which flows take F, is
// made of equal slices
//
//   flows - c + sqrt(c^2 + L^2),   c = hidden share x flows,   L so that flows of F give T
//
// so that slower flows make it longer by the part that is not hidden (CommPhase in task_graph.h).
//
// Longer passes of one stage make other stages wait, or fill a bubble of the same stage. So if a
// run finds that the passes of stages are longer by e_s, the pipeline is replayed with them
// (stretches.h). It is then run again with each segment longer or shorter by
//
//   replayed segment - segment - its part of e_s
//
// which is the growth of its wait for other stages. Flows spread over longer segments contend less,
// so this is repeated until the changes are small.
//
// If no two collectives overlap, the result equals the first form: without a layout a rank makes
// one call at a time.
//
// Within a slice, calls of one communicator follow each other, and calls of different ones overlap
// (calls_in_order.h). So a short call that contends can be hidden behind a longer call of another
// communicator over other links. An example is sends between stages over an oversubscribed tree,
// next to tensor parallelism within the nodes. The closed form adds their times.
#pragma once

#include <optional>

#include "models/training/run/execute.h"

namespace lambcast {

// Executes the step on the shared network; absent if it is too large to be simulated there
// (shared_network.h).
std::optional<Execution> execute_shared(const StepPlan& plan, const std::vector<Price>& prices,
                                        const TrainingPlan& training, CollectiveCosts& costs,
                                        Intervals intervals = Intervals::found);

}  // namespace lambcast
