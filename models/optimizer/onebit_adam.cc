// 1-bit Adam (Tang et al. 2021, arXiv:2102.02888; deepspeed/runtime/fp16/onebit/adam.py).
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

using namespace expression;

Passes update(StepKind step, Kernels kernels) {
  const bool warmup = step == StepKind::warmup;
  if (kernels == Kernels::fused)
    return step == StepKind::compression ? Passes{18, 1, 0, 0, 0, "onebit_adam_step"}
                                         : Passes{30, 1, 0, 0, 0, "adam_step"};
  if (warmup) return {momentum + variance + direction + decay + apply, 0, 13, 0, 0};
  return {momentum + direction + decay + apply, 0, 11, 0, 0};
}

}  // namespace

const OptimizerModel onebit_adam_model{.type = OptimizerType::onebit_adam,
                                       .name = "onebit_adam",
                                       .title = "1-bit Adam",
                                       .label = "1-bit Adam",
                                       .plain = OptimizerType::adam,
                                       .of_deepspeed = true,
                                       .flat_in_fp16 = true,
                                       .onebit = true,
                                       .update = update,
                                       .phases = onebit_phases,
                                       .state_bytes = two_moments,
                                       .published_freeze_share = 0.15};

}  // namespace lambcast
