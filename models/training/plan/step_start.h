// Work of a step before its first pass, if a framework has its own buffers for all steps. One rank
// reads and writes, in bytes per element:
//
//   gradients   cleared, because the passes add to them: 2 or 4 (Megatron-LM core/distributed/
//               param_and_grad_buffer.py, reset)
//   weights     of blocks that are multiplied in 8 or 4 bits, quantized for all micro batches: read
//               in 16 bits, written as rows and as columns, 4 or 3 (Transformer Engine
//               pytorch/module/base.py, get_weight_workspace). If gathered in 8 bits, they already
//               are rows: 2. Frozen weights are quantized before training
//
// Neither applies to sharded weights, nor to layerwise optimizers, which Megatron-LM does not have:
// such runs use other programs. Not modelled: quantization by FSDP after every gather.
#pragma once

#include <vector>

#include "models/optimizer/optimizer_model.h"
#include "models/parallel/rank_parameters.h"
#include "models/training/plan/parallelism.h"
#include "models/training/plan/step_part.h"

namespace lambcast {

// Returns the work on the parameters `held` by one rank. `with_adapters`: all weights except
// those of adapters are frozen.
std::vector<StepPart> step_start(const Parallelism& how, OptimizerType optimizer,
                                 bool with_adapters, const parallel::RankParameters& held);

}  // namespace lambcast
