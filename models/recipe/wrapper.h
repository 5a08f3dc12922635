// DeepSpeed's wrapper around the optimizer. It determines the tensors that the optimizer gets, the
// share of its state on a rank, and which component sums the gradients.
//
//   precision, stage                          wrapper                 optimizer gets      shard
//   fp16, 0, Adams                            FP16_Optimizer          a tensor per group  all
//   fp16, 0, any other optimizer              FP16_UnfusedOptimizer   every tensor        all
//   bf16, 0, from release 0.17.6 on           as fp16
//   bf16, 0, before, or 0 or 1 with sums      BF16_Optimizer          a tensor per group  1 / n
//   of micro batches in fp32, from 0.6.2 on
//   any, 1 and 2 otherwise                    DeepSpeedZeroOptimizer  a tensor per group  1 / n
//   fp32, 0                                   none                    every tensor        all
//
// BF16_Optimizer shards without ZeRO: gradients are accumulated in an fp32 buffer of the whole
// model and summed over the ranks after the last micro batch, and the weights are gathered after
// the step.
//
// Source: DeepSpeed v0.15.4 to v0.19.5, runtime/engine.py (get_data_types,
// _do_optimizer_sanity_check, _configure_fp16_optimizer), runtime/bf16_optimizer.py,
// runtime/zero/stage_1_and_2.py.
#pragma once

#include "models/recipe/recipe.h"

namespace lambcast {

enum class Wrapper { none, fp16, fp16_unfused, bf16, zero };

Wrapper wrapper_of(const Recipe& recipe);

// Returns whether the optimizer gets each parameter group as one flat tensor.
constexpr bool is_flat(Wrapper wrapper) {
  return wrapper == Wrapper::fp16 || wrapper == Wrapper::bf16 || wrapper == Wrapper::zero;
}

// Returns whether a rank updates 1 / n of the parameters, and weights are gathered after the step.
constexpr bool is_sharded(Wrapper wrapper) {
  return wrapper == Wrapper::bf16 || wrapper == Wrapper::zero;
}

// Returns whether the wrapper checks for overflow and divides by a loss scale, which may be 1.
constexpr bool is_fp16(Wrapper wrapper) {
  return wrapper == Wrapper::fp16 || wrapper == Wrapper::fp16_unfused;
}

// Returns the type in which micro batches accumulate their gradients: the recipe's; by default fp32
// for bf16 without ZeRO before release 0.17.6, else that of the weights.
DataType accumulation_data_type(const Recipe& recipe);

}  // namespace lambcast
