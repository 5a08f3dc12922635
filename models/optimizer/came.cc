// CAME (Luo et al. 2023, arXiv:2307.02047) as Colossal-AI's DistributedCAME runs it
// (colossalai/nn/optimizer/distributed_came.py): Adafactor with a first moment and a factored
// residual.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// About 40 passes over the shard, a kernel each.
Passes update(StepKind, Kernels) { return {160, 0, 40, 0, 0}; }

double states(const StateTensor& tensor) {
  const double factors = tensor.rows > 0 ? 2 * (tensor.rows + tensor.columns) : tensor.elements;
  return 4 * (tensor.elements + factors);
}

}  // namespace

// Column means of the gradient and of the residual, and a root mean square, charged as Adafactor's.
const OptimizerModel came_model{.type = OptimizerType::came,
                                .name = "came",
                                .label = "DistributedCAME",
                                .plain = OptimizerType::came,
                                .of_deepspeed = false,
                                .update = update,
                                .state_bytes = states,
                                .calls_per_shared_tensor = 3,
                                .bytes_per_call = 4};

}  // namespace lambcast
