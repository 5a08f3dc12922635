// Stochastic gradient descent without momentum, which keeps no state. PyTorch: torch/optim/sgd.py,
// p.add_(g) tensor by tensor.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// The update reads p and g and writes p. kernels/ has no SGD, so Kernels::fused has the same costs.
Passes sgd_update(StepKind, Kernels, bool) { return {8 + 4, 0, 1, 0, 0}; }

double no_state(const StateTensor&, const Projection&) { return 0; }

}  // namespace

const OptimizerModel sgd_model{.type = OptimizerType::sgd,
                               .name = "sgd",
                               .title = "SGD",
                               .label = "SGD",
                               .plain = OptimizerType::sgd,
                               .of_deepspeed = false,
                               .in_kernels = false,
                               .update = sgd_update,
                               .state_bytes = no_state};

}  // namespace lambcast
