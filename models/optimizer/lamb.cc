// LAMB (You et al. 2020, arXiv:1904.00962). DeepSpeed: FusedLamb, one fused kernel in three
// launches a tensor (csrc/lamb/fused_lamb_cuda_kernel.cu). Apex: multi-tensor, norms apart.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

Passes lamb_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {42, 3, 0, 0, 0, "lamb_step"};
  return kernels == Kernels::nvidia ? Passes{48, 20, 0, 0, 0} : Passes{42, 0, 3, 0, 0};
}

}  // namespace

const OptimizerModel lamb_model{.type = OptimizerType::lamb,
                                .name = "lamb",
                                .title = "LAMB",
                                .label = "FusedLamb",
                                .plain = OptimizerType::lamb,
                                .of_deepspeed = true,
                                .in_onebit = OptimizerType::onebit_lamb,
                                .is_lamb = true,
                                .layerwise = true,
                                .update = lamb_update,
                                .state_bytes = two_moments};

}  // namespace lambcast
