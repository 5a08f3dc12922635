// The end of a step: all ranks learn whether a gradient overflowed, then each updates its share of
// the weights.
//
//   agreement    without a layout: the overflow flag, if the wrapper reduces it in every step or if
//                ranks sum no gradients.
//                Under a layout: norm and overflow, two all_reduces of 4 bytes over the ranks of a
//                copy of the model; over all ranks if they share states, or if they sum no
//                gradients (DeepSpeed with fp16); a barrier of all stages, except in zero-bubble
//                schedules, whose stages step separately
//   update       passes of the wrapper (models/recipe/wrapper.h) and of the optimizer over the
//                rank's share, and further work and calls (optimizer_state.h); or on the host
//                (host_update.h)
//   momenta      of 1-bit optimizers exchanged (compressed_allreduce.h): once per fused buffer
//                (LAMB), per parameter group (Adam, fp16; with bf16 for the rank's share of it) or
//                per tensor (Adam, fp32); under a layout, each stage's shard over its replicas
//   weights      gathered, if ranks share states: group by group, or under a layout at once
//
// Sources: Megatron-LM core/optimizer/{distrib_optimizer,clip_grads}.py; DeepSpeed
// runtime/pipe/engine.py (_exec_optimizer_step).
#pragma once

#include "models/training/plan/step_draft.h"

namespace lambcast {

void add_agreement(StepDraft& draft);
void add_update(StepDraft& draft, int stage);

}  // namespace lambcast
