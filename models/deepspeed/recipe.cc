#include "models/deepspeed/recipe.h"

namespace lambcast::deepspeed {
namespace {

Precision precision_of(const DeepSpeedConfig& config) {
  Precision precision;
  if (config.fp16.enabled.value)
    precision.weights = DataType::fp16;
  else if (config.bf16_enabled.value)
    precision.weights = DataType::bf16;
  precision.gradients = config.communication_data_type.value;
  precision.sums = config.grad_accum_dtype.value;
  if (config.fp16.enabled.value && config.fp16.loss_scale.value == 0)
    precision.loss_scale_window = config.fp16.loss_scale_window.value;
  return precision;
}

}  // namespace

Engine engine_of(const Version& release) {
  return {release >= release::checks_every_tensor, release >= release::has_bf16_optimizer,
          release >= release::wraps_bf16_as_fp16};
}

Recipe recipe_of(const DeepSpeedConfig& config) {
  Recipe recipe;
  recipe.precision = precision_of(config);
  recipe.zero = {static_cast<int>(config.zero.stage.value),
                 config.zero.overlap_comm.value.value_or(false),
                 config.zero.reduce_scatter.value,
                 config.zero.reduce_bucket_size.value,
                 config.zero_allow_untested_optimizer.value,
                 config.zero.prefetch_bucket_size.value,
                 config.zero.param_persistence_threshold.value,
                 config.zero.max_live_parameters.value,
                 config.zero.max_reuse_distance.value};
  recipe.gradient_clipping = config.gradient_clipping.value;
  recipe.curriculum = config.curriculum;
  recipe.engine = engine_of(config.release.value);
  if (!config.optimizer) return recipe;
  const OptimizerConfig& optimizer = *config.optimizer;
  recipe.optimizer = optimizer.type;
  const bool of_file = optimizer.line > 0;
  if (of_file || optimizer.weight_decay.given) recipe.weight_decay = optimizer.weight_decay.value;
  recipe.backend = backend_of(optimizer).value_or(Backend::nccl);
  recipe.onebit = {optimizer.freeze_step.value, optimizer.var_freeze_step.value,
                   optimizer.var_update_scaler.value, optimizer.local_step_scaler.value,
                   optimizer.local_step_clipper.value};
  return recipe;
}

}  // namespace lambcast::deepspeed
