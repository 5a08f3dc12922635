#include "models/deepspeed/wrapper.h"

namespace lambcast::deepspeed {

DataType weight_data_type(const DeepSpeedConfig& config) {
  if (config.fp16.enabled.value) return DataType::fp16;
  return config.bf16_enabled.value ? DataType::bf16 : DataType::fp32;
}

DataType accumulation_data_type(const DeepSpeedConfig& config) {
  if (config.grad_accum_dtype.value) return *config.grad_accum_dtype.value;
  const DataType weights = weight_data_type(config);
  const bool as_fp16 = config.release.value >= release::wraps_bf16_as_fp16;
  return weights == DataType::bf16 && config.zero.stage.value == 0 && !as_fp16 ? DataType::fp32
                                                                               : weights;
}

Wrapper wrapper_of(const DeepSpeedConfig& config) {
  const DataType weights = weight_data_type(config);
  const Whole stage = config.zero.stage.value;
  const bool in_fp32 = accumulation_data_type(config) == DataType::fp32;
  if (weights == DataType::bf16 && in_fp32 && stage <= 1) return Wrapper::bf16;
  if (stage > 0) return Wrapper::zero;
  if (weights == DataType::fp32) return Wrapper::none;
  const bool lamb = config.optimizer && is_lamb(config.optimizer->type);
  return lamb ? Wrapper::fp16_unfused : Wrapper::fp16;
}

}  // namespace lambcast::deepspeed
