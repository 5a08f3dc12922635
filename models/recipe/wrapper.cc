#include "models/recipe/wrapper.h"

namespace lambcast {

DataType accumulation_data_type(const Recipe& recipe) {
  const DataType weights = recipe.precision.weights;
  if (recipe.precision.sums) return *recipe.precision.sums;
  return weights == DataType::bf16 && recipe.zero.stage == 0 && !recipe.engine.wraps_bf16_as_fp16
             ? DataType::fp32
             : weights;
}

Wrapper wrapper_of(const Recipe& recipe) {
  const DataType weights = recipe.precision.weights;
  const bool in_fp32 = accumulation_data_type(recipe) == DataType::fp32;
  if (weights == DataType::bf16 && in_fp32 && recipe.zero.stage <= 1 &&
      recipe.engine.has_bf16_optimizer)
    return Wrapper::bf16;
  if (recipe.zero.stage > 0) return Wrapper::zero;
  if (weights == DataType::fp32) return Wrapper::none;
  return model_of(recipe.optimizer).flat_in_fp16 ? Wrapper::fp16 : Wrapper::fp16_unfused;
}

}  // namespace lambcast
