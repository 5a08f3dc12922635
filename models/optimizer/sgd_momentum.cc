// Stochastic gradient descent with momentum. PyTorch: torch/optim/sgd.py, tensor by tensor:
// g.add(p) with weight decay, m.mul_() and m.add_(g), p.add_(m).
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// kernels/ has no SGD, so Kernels::fused has the same costs.
Passes sgd_momentum_update(StepKind, Kernels, bool decays) {
  const double decay = decays ? 1 : 0;
  return {8 + 12 + 12 + 12 * decay, 0, 3 + decay, 0, 0};
}

}  // namespace

const OptimizerModel sgd_momentum_model{.type = OptimizerType::sgd_momentum,
                                        .name = "sgd_momentum",
                                        .title = "SGD with momentum",
                                        .label = "SGD",
                                        .plain = OptimizerType::sgd_momentum,
                                        .of_deepspeed = false,
                                        .in_kernels = false,
                                        .update = sgd_momentum_update,
                                        .state_bytes = one_moment};

}  // namespace lambcast
