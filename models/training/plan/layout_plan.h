// The plan of a step under a layout (parallelism.h): passes of every pipeline stage
// (pipeline_plan.h), then what ends a step. Ranks of one stage do the same, so each stage is
// planned once (rank class).
//
//   gradients    of a stage summed over the d c ranks that hold the same weights: all_reduce, or
//                reduce_scatter if they share states; beyond shard_ranks, all_reduce between
//                copies. A framework that overlaps starts a chunk's when its last backward pass has
//                made the first bucket. All except the last bucket hide; those of stages that end
//                early hide in the cool-down of others.
//                parallelism: all_reduce over t
//   barrier      norm and overflow: two all_reduces of 4 bytes over all ranks, except in
//                zero-bubble schedules, whose stages step on their own
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
