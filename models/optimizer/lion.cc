// Lion (Chen et al. 2023, arXiv:2302.06675): the sign of a mix of momentum and gradient, so only
// one state is kept. DeepSpeed: FusedLion (csrc/lion/multi_tensor_lion.cu), one multi-tensor
// kernel, which fp16 wraps in FP16_UnfusedOptimizer (runtime/engine.py lists only FusedAdam as
// fused).
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// The update reads g, p and m and writes p and m; the fused kernel also writes the weights in 16
// bits.
Passes lion_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {12 + 8 + 2, 1, 0, 0, 0, "lion_step"};
  return {12 + 8, 1, 0, 0, 0};
}

}  // namespace

const OptimizerModel lion_model{.type = OptimizerType::lion,
                                .name = "lion",
                                .title = "Lion",
                                .label = "FusedLion",
                                .plain = OptimizerType::lion,
                                .of_deepspeed = true,
                                .update = lion_update,
                                .state_bytes = one_moment};

}  // namespace lambcast
