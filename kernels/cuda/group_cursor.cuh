// Device code of elementwise kernels whose buffers are cut into runs of parameter groups (adam.h).
#pragma once

#include "kernels/cuda/adam.h"
#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

// Walks the runs with a thread's rising elements. `Constants` is what the kernel computes with, of
// which enter() sets what a group has of its own.
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

// Settings of a group: the rate, which may lie in device memory, and the decay.
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
