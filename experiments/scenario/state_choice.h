// The types in which ranks gather weights and keep Adam's states, and what waits in the host's
// memory: the keys fp8_weight_gather, state_types, offload_optimizer and offload_activations.
//
//   gather   weights that are multiplied in fp8 are gathered in 1 byte instead of 2; vocabularies
//            and norms stay 16-bit
//   states   an update reads and writes the bytes of each state once, and memory holds them
//
// Sources: torchao float8 (enable_fsdp_float8_all_gather); Megatron-LM,
// core/optimizer/optimizer_config.py and core/optimizer/distrib_optimizer.py; Transformer Engine,
// pytorch/optimizers/fused_adam.py.
#pragma once

#include "experiments/scenario/words.h"
#include "models/optimizer/optimizer_model.h"
#include "models/recipe/recipe.h"
#include "models/shape/shape.h"
#include "models/training/plan/parallelism.h"

namespace lambcast {

// Sets how DeepSpeed sums gradients and shards states, which depends on its release and on
// data_types.grad_accum_dtype. Reads format, framework, layout and sharding of `how`. The key
// fp32_gradients takes precedence.
//
// With a pipeline, bf16 is wrapped in BF16_Optimizer; so it is without a pipeline in releases
// before 0.17.6. It shards the states over the replicas even at stage 0, and sums whole gradients.
// 1-bit optimizers do not run in it. Source: DeepSpeed, runtime/bf16_optimizer.py;
// runtime/pipe/engine.py, _bf16_reduce_grads; runtime/engine.py, _do_optimizer_sanity_check.
void follow_engine(const Words& words, const Recipe& recipe, Parallelism& how);

// Reads format, framework and sharding of `how`, and sets its fp8_gather and states. Throws Error
// (usage).
void choose_state_precision(const Words& words, OptimizerType optimizer, Parallelism& how);

// Reads --offload-optimizer. Throws Error (usage) if DeepSpeed does not run it.
void choose_offload(const Words& words, OptimizerType optimizer, Parallelism& how);

// Reads --offload-activations, which depends on the recomputation in `how`: checkpoints exist only
// with full recomputation. Throws Error (usage).
void choose_activation_offload(const Words& words, const ModelShape& model, Parallelism& how);

}  // namespace lambcast
