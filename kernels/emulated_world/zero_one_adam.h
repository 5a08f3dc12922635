// 0/1 Adam over n ranks: variance updates at growing intervals with full-precision gradients, and
// 1-bit gradients in between. After the freeze of the variance: local steps with a 1-bit
// synchronisation at growing intervals (kernels/zero_one_policy.h).
//
// After a synchronisation the replicas agree only up to rounding, because each one rewinds its own
// local steps. If all learning rates since the last synchronisation were 0, nothing has moved and
// nothing is sent; with the quirk zero_lr_poisons the momentum is divided by 0. A single rank
// neither sends nor masks. Source: DeepSpeed 0.15.4, runtime/fp16/onebit/zoadam.py; 0/1 Adam,
// arXiv:2202.06009.
#pragma once

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/emulated_world/world.h"
#include "kernels/zero_one_policy.h"

namespace lambcast::emulated {

struct ZeroOneAdam {
  struct Rank {
    std::vector<float> p, m, v, u;
  };

  World world;
  ZeroOneAdamOptions options;
  std::vector<Rank> ranks;
  std::vector<ErrorFeedback> errors;  // per tensor; set to zero once at the freeze
  ZeroOnePolicy policy;
  double lrs = 0;  // sum of the learning rates since the last synchronisation
  int step = 0;
  bool engine_allreduce = true;  // whether the engine averages the next gradients
  bool dry_run_pending = false;
};

ZeroOneAdam zero_one_adam(const World& world, const ZeroOneAdamOptions& options);
Step step(ZeroOneAdam& optimizer, Gradients gradients);

inline std::span<const float> weights(const ZeroOneAdam& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

// Resumes as DeepSpeed does when it loads a checkpoint into a new process. Error feedback, u, the
// counters of the policy and the freeze of the variance are lost, so that a resumed run
// communicates in each step again. The saved policy sets the engine's all-reduce. If that is off,
// the next step moves variance, momentum and weights of each rank by its own gradient, and the
// replicas diverge permanently. For a correct resume, copy the optimizer.
void resume_as_deepspeed(ZeroOneAdam& optimizer);

}  // namespace lambcast::emulated
