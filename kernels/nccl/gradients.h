// From the gradients that backward passes leave to those that an optimizer may see, for all ranks
// of a thread, before any state moves:
//
//   mean        over the ranks, where the step asks for it: in 16 bits where they are fp16 or bf16,
//               half the bytes of fp32, as DeepSpeed sends them
//   norm        measure_gradient on every rank, and its mean over the ranks: an all-reduce of 8
//               bytes (shared_norm.h). It is not finite where any rank's gradient is not, which is
//               the one flag that all ranks go by: the host waits for it, and the step is skipped
//   unscale     by the loss scale, and clip by the shared norm; 16 bits become fp32
//
// Where neither overflow, clipping nor a loss scale is asked for, fp32 gradients are only averaged,
// and nothing waits.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/half_precision.h"
#include "kernels/cuda/reduction.h"
#include "kernels/nccl/watch.h"

namespace lambcast::cuda {

struct GradientOptions {
  double loss_scale = 1;       // what the gradients are multiplied with
  double max_norm = 0;         // clipping; 0: none
  bool check_overflow = true;  // costs the wait: off where a CUDA graph is captured
  double timeout_s = 600;      // how long that wait may be (watch.h)
};

// The device memory that it takes.
struct GradientNorm {
  DeviceBuffer<double> squared{1};
  DeviceBuffer<double> workspace{reduction_slots};
};

struct RankGradient : Watched {
  std::size_t elements = 0;
  HalfPointer half;         // gradients in 16 bits, or null; overwritten by their mean
  float* values = nullptr;  // what the optimizer sees; the gradient itself where half is null
  const GradientNorm* norm = nullptr;
};

// The mean over the ranks of the values from `first` on.
void average(const NcclApi& nccl, std::span<const RankGradient> ranks, std::size_t first);

// Does all of the above; `averaged` tells whether the step needs the mean. Returns false if a
// gradient of any rank overflowed. Throws Error{Exit::failure} naming the call or the rank that
// failed.
bool reduce(const NcclApi& nccl, std::span<const RankGradient> ranks, bool averaged,
            const GradientOptions& options);

}  // namespace lambcast::cuda
