// The second form of execute.h, for the flow model: all collectives of a step run on one network
// and share its links, instead of each lasting its time alone.
//
// Calls are placed on the nodes of their ranks. Gradients of pipeline stages meet if the stages
// share a node's NICs. They also meet the tensor-parallel collectives and the exchanges of tokens,
// keys and activations of overlapping passes. The latter are put on the links evenly over each
// segment of a stage's passes. A segment that lasts T alone, of which flows take F, is made of
// equal slices
//
//   flows - c + sqrt(c^2 + L^2),   c = hidden share x flows,   L so that it is T where F is alone
//
// so that slower flows make it longer as far as nothing hides them (CommPhase in task_graph.h).
//
// Longer passes of one stage make other stages wait, or fill a bubble of its own. So if a run finds
// the passes of stages longer by e_s, the pipeline is replayed with them (stretches.h). It is then
// run again with each segment longer or shorter by
//
//   replayed segment - segment - its part of e_s
//
// which is the growth of its wait for other stages. Flows that are spread over longer segments meet
// less, so this is repeated until little changes.
//
// If no two collectives overlap, this equals the first form: without a layout a rank makes one call
// at a time.
#pragma once

#include <optional>

#include "models/training/run/execute.h"

namespace lambcast {

// None where the step is too large to be written out (shared_network.h).
std::optional<Execution> execute_shared(const StepPlan& plan, const std::vector<Price>& prices,
                                        const TrainingPlan& training, CollectiveCosts& costs,
                                        Intervals intervals = Intervals::found);

}  // namespace lambcast
