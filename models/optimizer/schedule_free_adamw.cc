// Schedule-Free AdamW (Defazio et al. 2024, arXiv:2405.15682) as in facebookresearch/schedule_free
// (adamw_schedulefree.py, foreach). Gradients are taken at y, an average of the evaluated weights
// and of z, which the steps move. States are z and the second moment.
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// One launch over all tensors per operation, in bytes: mul_ and addcmul_ of the second moment 8 +
// 12, division, sqrt_ and add_ of the root 8 each, the gradient over it 12, lerp_ of y to z 12,
// steps of y and of z 12 each, decay 12.
Passes schedule_free_update(StepKind, Kernels, bool decays) {
  return {20 + 24 + 12 + 12 + 24 + (decays ? 12.0 : 0), decays ? 10.0 : 9.0, 0, 0, 0};
}

}  // namespace

const OptimizerModel schedule_free_adamw_model{.type = OptimizerType::schedule_free_adamw,
                                               .name = "schedule_free_adamw",
                                               .title = "Schedule-Free AdamW",
                                               .label = "AdamWScheduleFree",
                                               .plain = OptimizerType::schedule_free_adamw,
                                               .of_deepspeed = false,
                                               .in_kernels = false,
                                               .update = schedule_free_update,
                                               .state_bytes = two_moments};

}  // namespace lambcast
