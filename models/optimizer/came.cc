// CAME (Luo et al. 2023, arXiv:2307.02047) as in Colossal-AI's DistributedCAME
// (colossalai/nn/optimizer/distributed_came.py): Adafactor with a first moment and a factored
// residual.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// About 40 passes over the shard, a kernel each. Fused: four rounds over all tensors, and workspace
// (kernels/cuda/factored.h).
Passes came_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {32.5, 10, 0, 0, 0, "came_step"};
  return {160, 0, 40, 0, 0};
}

double came_states(const StateTensor& tensor, const Projection&) {
  const double factors = tensor.rows > 0 ? 2 * (tensor.rows + tensor.columns) : tensor.elements;
  return 4 * (tensor.elements + factors);
}

}  // namespace

// CAME keeps two statistics as means of rows and columns: that of the gradient and that of the
// residual.
const OptimizerModel came_model{.type = OptimizerType::came,
                                .name = "came",
                                .title = "CAME",
                                .label = "DistributedCAME",
                                .plain = OptimizerType::came,
                                .of_deepspeed = false,
                                .rounds_apart = true,
                                .update = came_update,
                                .same_states = false,
                                .state_bytes = came_states,
                                .sums_per_tensor = 1,
                                .factored_statistics = 2};

}  // namespace lambcast
