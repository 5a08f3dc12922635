// Adam and AdamW. DeepSpeed: FusedAdam (csrc/adam/multi_tensor_adam.cu), one multi-tensor kernel;
// unfused if a stack used PyTorch's own.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

using namespace expression;

Passes adam_update(StepKind, Kernels kernels, bool decays) {
  if (kernels == Kernels::fused) return {30, 1, 0, 0, 0, "adam_step"};
  const double unfused = momentum + variance + direction + apply + (decays ? decay : 0);
  const double operations = decays ? 13 : 11;
  if (kernels == Kernels::unfused_adam) return {unfused, 0, operations, 0, 0};
  if (kernels == Kernels::foreach_adam) return {unfused, operations, 0, 0, 0};
  return {28, 1, 0, 0, 0};
}

}  // namespace

const OptimizerModel adam_model{.type = OptimizerType::adam,
                                .name = "adam",
                                .title = "Adam",
                                .label = "FusedAdam",
                                .plain = OptimizerType::adam,
                                .of_deepspeed = true,
                                .in_onebit = OptimizerType::onebit_adam,
                                .flat_in_fp16 = true,
                                .update = adam_update,
                                .state_bytes = two_moments};
const OptimizerModel adamw_model{.type = OptimizerType::adamw,
                                 .name = "adamw",
                                 .title = "AdamW",
                                 .label = "FusedAdam",
                                 .plain = OptimizerType::adamw,
                                 .of_deepspeed = true,
                                 .in_onebit = OptimizerType::onebit_adam,
                                 .flat_in_fp16 = true,
                                 .update = adam_update,
                                 .state_bytes = two_moments};

}  // namespace lambcast
