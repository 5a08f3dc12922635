// The second form of execute.h, for the flow model: all collectives of a step run on one network
// and share its links, instead of each lasting as long as it does alone.
//
// What calls are made of lies where its ranks do: gradients of the stages of a pipeline meet where
// stages share a node's NICs, and meet the tensor-parallel collectives, exchanges of tokens, keys
// and activations of the passes beside them. The latter are put on the links evenly over each
// stretch of a stage's passes. A stretch that lasts T alone, of which flows take F, is made of
// equal slices
//
//   flows - c + sqrt(c^2 + L^2),   c = hidden share x flows,   L so that it is T where F is alone
//
// so that slower flows make it longer as far as nothing hides them (CommPhase in task_graph.h).
//
// What makes a stage's passes longer makes other stages wait, or fills a bubble of its own. So
// where a run finds the passes of stages longer by e_s, the pipeline is replayed with them
// (stretches.h), and run again with each stretch longer or shorter by
//
//   replayed stretch - stretch - its part of e_s
//
// which is what its wait for other stages grew by. Flows that are spread over longer stretches meet
// less, so that is done until little changes.
//
// Where no two collectives are under way at once, this is the first form: without a layout a rank
// makes one call at a time.
#pragma once

#include "models/training/run/execute.h"

namespace lambcast {

// In streams (`apart`) where the step is too large to be written out (shared_network.h).
Execution execute_shared(const StepPlan& plan, const std::vector<Price>& prices,
                         const TrainingPlan& training, CollectiveCosts& costs,
                         Intervals intervals = Intervals::found);

}  // namespace lambcast
