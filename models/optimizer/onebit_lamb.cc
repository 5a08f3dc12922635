// 1-bit LAMB (Li et al. 2021, arXiv:2104.06069; deepspeed/runtime/fp16/onebit/lamb.py).
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

using namespace expression;

Passes update(StepKind step, Kernels kernels) {
  if (kernels == Kernels::fused)
    return step == StepKind::compression ? Passes{42.125, 3, 0, 0, 0, "onebit_lamb_step"}
                                         : Passes{42, 3, 0, 0, 0, "lamb_step"};
  if (step == StepKind::warmup)
    return {momentum + variance + direction + decay + norms + apply, 0, 19, 0, 2};
  // clone(m) 8; m scaled 8 and unscaled 8; gradient rebuilt: mul 8, sub 12, div 8; fresh variance;
  // denominator 16; m / den 12; decay; factor: sqrt 8, add 8, div 12, max 4; norms; apply.
  return {8 + momentum + 8 + 8 + 28 + variance + 16 + 12 + decay + 32 + norms + apply, 0, 28, 0, 3};
}

}  // namespace

const OptimizerModel onebit_lamb_model{.type = OptimizerType::onebit_lamb,
                                       .name = "onebit_lamb",
                                       .label = "1-bit Lamb",
                                       .plain = OptimizerType::lamb,
                                       .of_deepspeed = true,
                                       .onebit = true,
                                       .is_lamb = true,
                                       .layerwise = true,
                                       .update = update,
                                       .state_bytes = two_moments,
                                       .published_freeze_share = 1000.0 / 5993.0};

}  // namespace lambcast
