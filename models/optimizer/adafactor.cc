// Adafactor (Shazeer and Stern 2018, arXiv:1804.04235) as in Colossal-AI's DistributedAdaFactor
// (colossalai/nn/optimizer/distributed_adafactor.py), without a first moment.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// About 22 passes over the shard, a kernel each, without synchronisation. Fused: three rounds over
// all tensors, and workspace (kernels/cuda/factored.h).
Passes adafactor_update(StepKind, Kernels kernels, bool) {
  if (kernels == Kernels::fused) return {24.5, 6, 0, 0, 0, "adafactor_step"};
  return {88, 0, 22, 0, 0};
}

// A matrix keeps means of its rows and columns, a vector its whole second moment.
double adafactor_states(const StateTensor& tensor, const Projection&) {
  return 4 * (tensor.rows > 0 ? tensor.rows + tensor.columns : tensor.elements);
}

}  // namespace

const OptimizerModel adafactor_model{.type = OptimizerType::adafactor,
                                     .name = "adafactor",
                                     .title = "Adafactor",
                                     .label = "DistributedAdaFactor",
                                     .plain = OptimizerType::adafactor,
                                     .of_deepspeed = false,
                                     .rounds_apart = true,
                                     .update = adafactor_update,
                                     .same_states = false,
                                     .state_bytes = adafactor_states,
                                     .sums_per_tensor = 1,
                                     .factored_statistics = 1};

}  // namespace lambcast
