// The passes of a step under a layout (parallelism.h), stage by stage, and the sums or exchanges of
// gradients among them:
//
//   gradients    of a stage summed over the d c ranks that hold the same weights: all_reduce, or
//                reduce_scatter if they share states; with fewer shard_ranks, all_reduce between
//                copies. With overlap, a chunk's reduction starts when its last backward pass has
//                completed the first bucket. All except the last bucket are hidden; those of stages
//                that end early are hidden in the cool-down of others.
//                Gradients of norms, with sequence parallelism: all_reduce over t; of a tied
//                embedding: all_reduce between the first and the last stage. In zero-bubble
//                schedules, stages end separately; neither all_reduce is modelled there
//   weights      of ranks that share states may be gathered at the start of the next step, during
//                the first micro batch, which begins with their first bucket (overlaps_weights)
//
// Sources: Megatron-LM core/distributed/finalize_model_grads.py; DeepSpeed runtime/pipe/engine.py
// (_exec_reduce_tied_grads, _exec_reduce_grads).
#pragma once

#include "models/training/plan/step_draft.h"

namespace lambcast {

// Sets the draft's pipeline, and adds its passes.
void add_pipeline_passes(StepDraft& draft);

// Returns the parts that gather the weights of a stage's ranks if these share optimizer states;
// `when` is appended to their names.
std::vector<StepPart> updated_weights(const StepDraft& draft, int stage, const char* when);

}  // namespace lambcast
