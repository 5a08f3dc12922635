// Device code of elementwise kernels whose buffers are divided into runs of parameter groups
// (adam.h).
#pragma once

#include "kernels/cuda/adam.h"
#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

// Finds the runs of a thread's increasing elements. enter() sets those members of `Constants` that
// depend on the group.
struct GroupCursor {
  const GroupRun* run;

  template <typename Constants>
  __device__ void move_to(std::size_t e, Constants& c) {
    if (run == nullptr) return;
    while (run->end <= e) ++run;
    c.enter(run->group);
  }
  __device__ bool ends_before(std::size_t e) const { return run != nullptr && run->end < e; }
};

// Settings of a group: the learning rate, which may be in device memory, and the decay.
struct GroupRate {
  float lr, wd;
  double exact_lr;

  GroupRate(double rate, double decay)
      : lr(static_cast<float>(rate)), wd(static_cast<float>(decay)), exact_lr(rate) {}

  __device__ void read_rate(const double* from) {
    if (from == nullptr) return;
    exact_lr = *from;
    lr = static_cast<float>(exact_lr);
  }
  __device__ void enter(const ParameterGroup& group) {
    lr = static_cast<float>(exact_lr * group.lr_scale);
    wd = static_cast<float>(group.weight_decay);
  }
};

}  // namespace lambcast::cuda
