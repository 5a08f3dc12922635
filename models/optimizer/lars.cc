// LARS (You et al. 2017, arXiv:1708.03888): momentum SGD with a rate per tensor.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// Norms read p in fp32 and g in fp16; the update reads g, p and m and writes p, m and the fp16 copy
// of p. Each is one multi-tensor kernel, and a third turns norms into rates. Fused: lars_norms of p
// and g in fp32 and lars_apply with the copy, in two launches each (kernels/cuda/lars.h).
Passes lars_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {8 + 22, 4, 0, 0, 0};
  return {6 + 20, 3, 0, 0, 0};
}

}  // namespace

const OptimizerModel lars_model{.type = OptimizerType::lars,
                                .name = "lars",
                                .title = "LARS",
                                .label = "LARS",
                                .plain = OptimizerType::lars,
                                .of_deepspeed = false,
                                .layerwise = true,
                                .update = lars_update,
                                .state_bytes = one_moment};

}  // namespace lambcast
