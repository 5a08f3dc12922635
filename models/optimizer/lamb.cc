// LAMB (You et al. 2020, arXiv:1904.00962). DeepSpeed: FusedLamb, one fused kernel in three
// launches a tensor (csrc/lamb/fused_lamb_cuda_kernel.cu). Apex: multi-tensor, norms apart.
// TensorFlow: operation by operation (NVIDIA DeepLearningExamples,
// TensorFlow/LanguageModeling/BERT/optimization.py, LAMBOptimizer); XLA is assumed to fuse none,
// since they stand in a branch of their own (tf.cond) behind Horovod's operations:
//
//   moments 28 + 36, unbiased 8 + 8, direction 28, decay 20, norms 12 + 12, apply 8 + 12,
//   assigned 3 x 8 bytes, in 3 + 4, 1 + 1, 3, 2, 3 + 3, 1 + 1 and 3 kernels, 6 more for the ratio
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

Passes lamb_update(StepKind, Kernels kernels, bool decays) {
  if (kernels == Kernels::fused) return {42, 3, 0, 0, 0, "lamb_step"};
  if (kernels == Kernels::unfused_adam)
    return decays ? Passes{196, 0, 31, 0, 0} : Passes{176, 0, 29, 0, 0};
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
