// Colossal-AI's DistributedLamb (colossalai/nn/optimizer/distributed_lamb.py): LAMB with correct
// norms if ranks share a tensor. Unfused, with a trust ratio per tensor that the host reads, and
// two all-reduces of scalars if ranks share the tensor. The ratio is not clamped.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// 28 passes over the shard move 4 bytes per element each, in some 20 launches; trust_ratio.item()
// synchronises.
Passes distributed_lamb_update(StepKind, Kernels kernels, bool decays) {
  if (kernels == Kernels::fused) return lamb_model.update(StepKind::uniform, kernels, decays);
  return {112, 0, 20, 0, 1};
}

}  // namespace

const OptimizerModel distributed_lamb_model{.type = OptimizerType::distributed_lamb,
                                            .name = "distributed_lamb",
                                            .title = "distributed LAMB",
                                            .label = "DistributedLamb",
                                            .plain = OptimizerType::distributed_lamb,
                                            .of_deepspeed = false,
                                            .is_lamb = true,
                                            .layerwise = true,
                                            .update = distributed_lamb_update,
                                            .state_bytes = two_moments,
                                            .sums_per_tensor = 1,
                                            .numbers_over_slices = 2};

}  // namespace lambcast
