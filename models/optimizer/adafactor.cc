// Adafactor (Shazeer and Stern 2018, arXiv:1804.04235) as Colossal-AI's DistributedAdaFactor runs
// it (colossalai/nn/optimizer/distributed_adafactor.py), without a first moment.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// About 22 passes over the shard, a kernel each; nothing waits for the host.
Passes update(StepKind, Kernels) { return {88, 0, 22, 0, 0}; }

// A row and a column of means for a matrix, the whole second moment of a vector.
double states(const StateTensor& tensor) {
  return 4 * (tensor.rows > 0 ? tensor.rows + tensor.columns : tensor.elements);
}

}  // namespace

// A root mean square of each tensor, and a vector of column means; each is charged as a call of
// four bytes, since the latency of so short a call decides.
const OptimizerModel adafactor_model{.type = OptimizerType::adafactor,
                                     .name = "adafactor",
                                     .label = "DistributedAdaFactor",
                                     .plain = OptimizerType::adafactor,
                                     .of_deepspeed = false,
                                     .update = update,
                                     .state_bytes = states,
                                     .calls_per_shared_tensor = 2,
                                     .bytes_per_call = 4};

}  // namespace lambcast
