// Adam-mini (Zhang et al. 2024, arXiv:2406.16793): Adam with one second moment for each block of
// the Hessian (zyushun/Adam-mini, adam_mini.py), a row of an embedding, head or projection. Queries
// and keys have one per head, fewer than counted here.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// Tensor by tensor, in bytes: decay 8, lerp_ of the moment 12, square 8, its mean 4, the moment
// over its block's root 8, learning rate 8, step 12. Launches: these, and six on the blocks.
Passes adam_mini_update(StepKind, Kernels, bool decays) {
  return {12 + 8 + 4 + 8 + 8 + 12 + (decays ? 8.0 : 0), 0, 13, 0, 0};
}

double adam_mini_states(const StateTensor& tensor, const Projection&) {
  return 4 * (tensor.elements + (tensor.rows > 0 ? tensor.rows : 1));
}

}  // namespace

const OptimizerModel adam_mini_model{.type = OptimizerType::adam_mini,
                                     .name = "adam_mini",
                                     .title = "Adam-mini",
                                     .label = "Adam-mini",
                                     .plain = OptimizerType::adam_mini,
                                     .of_deepspeed = false,
                                     .in_kernels = false,
                                     .update = adam_mini_update,
                                     .same_states = false,
                                     .state_bytes = adam_mini_states};

}  // namespace lambcast
