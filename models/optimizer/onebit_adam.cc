// 1-bit Adam (Tang et al. 2021, arXiv:2102.02888; deepspeed/runtime/fp16/onebit/adam.py).
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

using namespace expression;

Passes onebit_adam_update(StepKind step, Kernels kernels, bool decays) {
  const bool warmup = step == StepKind::warmup;
  if (kernels == Kernels::fused)
    return step == StepKind::compression ? Passes{18.125, 1, 0, 0, 0, "onebit_adam_step"}
                                         : Passes{30, 1, 0, 0, 0, "adam_step"};
  const double common = momentum + direction + apply + (decays ? decay : 0);
  const double launches = decays ? 11 : 9;
  if (warmup) return {common + variance, 0, launches + 2, 0, 0};
  return {common, 0, launches, 0, 0};
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
                                       .update = onebit_adam_update,
                                       .phases = onebit_phases,
                                       .state_bytes = two_moments,
                                       .published_freeze_share = 0.15};

}  // namespace lambcast
