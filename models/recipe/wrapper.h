// DeepSpeed's wrapper around the optimizer. It decides in how many pieces the optimizer sees the
// parameters, which share of its state a rank holds, and who sums the gradients.
//
//   precision, stage                          wrapper                 optimizer sees      shard
//   fp16, 0, Adams                            FP16_Optimizer          a tensor per group  all
//   fp16, 0, any other optimizer              FP16_UnfusedOptimizer   every tensor        all
//   bf16, 0, from release 0.17.6 on           as fp16
//   bf16, 0, before, or 0 or 1 with sums      BF16_Optimizer          a tensor per group  1 / n
//   of micro batches in fp32
//   any, 1 and 2 otherwise                    DeepSpeedZeroOptimizer  a tensor per group  1 / n
//   fp32, 0                                   none                    every tensor        all
//
// BF16_Optimizer shards without ZeRO: gradients are added up in an fp32 buffer of the whole model,
// summed over the ranks when the last micro batch is done, and the weights gathered after the step.
//
// Source: DeepSpeed v0.15.4 to v0.19.5, runtime/engine.py (get_data_types,
// _do_optimizer_sanity_check, _configure_fp16_optimizer), runtime/bf16_optimizer.py,
// runtime/zero/stage_1_and_2.py.
#pragma once

#include "models/recipe/recipe.h"

namespace lambcast {

enum class Wrapper { none, fp16, fp16_unfused, bf16, zero };

Wrapper wrapper_of(const Recipe& recipe);

// Whether the optimizer sees each parameter group as one flat tensor.
constexpr bool is_flat(Wrapper wrapper) {
  return wrapper == Wrapper::fp16 || wrapper == Wrapper::bf16 || wrapper == Wrapper::zero;
}

// Whether a rank updates 1 / n of the parameters, and weights are gathered after the step.
constexpr bool is_sharded(Wrapper wrapper) {
  return wrapper == Wrapper::bf16 || wrapper == Wrapper::zero;
}

// Whether the wrapper looks for overflow and unscales by a loss scale that may be 1.
constexpr bool is_fp16(Wrapper wrapper) {
  return wrapper == Wrapper::fp16 || wrapper == Wrapper::fp16_unfused;
}

// The type in which micro batches add up their gradients: as the recipe says, else before release
// 0.17.6 fp32 for bf16 without ZeRO, else the weights'.
DataType accumulation_data_type(const Recipe& recipe);

}  // namespace lambcast
