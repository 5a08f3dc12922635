// The plan of a step under a layout (parallelism.h): the passes of every pipeline stage
// (pipeline_plan.h), then the end of the step. Ranks of one stage do the same, so each stage is
// planned once (rank class).
//
//   gradients    of a stage summed over the d c ranks that hold the same weights: all_reduce, or
//                reduce_scatter if they share states; with fewer shard_ranks, all_reduce between
//                copies. With overlap, a chunk's reduction starts when its last backward pass has
//                completed the first bucket. All except the last bucket are hidden; those of stages
//                that end early are hidden in the cool-down of others.
//                Of norms, with sequence parallelism: all_reduce over t; of a tied embedding:
//                all_reduce between the first and the last stage
//   barrier      norm and overflow: two all_reduces of 4 bytes over all ranks, except in
//                zero-bubble schedules, whose stages step separately
//   update       of the rank's share, then weights all_gathered; or at the start of the next step,
//                during the first micro batch, which begins with their first bucket
//                (overlaps_weights)
//   compressed   1-bit optimizers: each stage's shard over its replicas, after the update of the
//                momentum
//
// Sources: Megatron-LM core/distributed/finalize_model_grads.py,
// core/optimizer/{distrib_optimizer,clip_grads}.py; DeepSpeed runtime/pipe/engine.py
// (_exec_reduce_tied_grads, _exec_reduce_grads, _exec_optimizer_step).
#pragma once

#include "models/training/plan/step_plan.h"

namespace lambcast {

StepPlan plan_layout_step(const TrainingPlan& training, const DistinctStep& step);

}  // namespace lambcast
