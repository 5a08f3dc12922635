// Prepares the gradients of backward passes for an optimizer, for all ranks of a thread, before any
// state changes:
//
//   mean        over the ranks, if the step needs it. fp16 and bf16 gradients are sent in 16 bits,
//               half the bytes of fp32, as in DeepSpeed.
//   norm        measure_gradient on every rank, and the mean over the ranks by an all-reduce of 8
//               bytes (shared_norm.h). It is not finite if any rank's gradient is not. The host
//               waits for this flag, and all ranks skip the step together.
//   factor      1 / (loss scale x clipping by the shared norm), one float in device memory. The
//               kernels of the step widen and multiply as they read (cuda/gradient_view.h), so that
//               no pass writes an fp32 copy.
//
// Without an overflow check, clipping and a loss scale, gradients are only averaged, and nothing
// waits.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/gradient_view.h"
#include "kernels/cuda/reduction.h"
#include "kernels/nccl/watch.h"

namespace lambcast::cuda {

struct GradientOptions {
  double loss_scale = 1;       // factor of the gradients
  double max_norm = 0;         // clipping limit; 0: none
  bool check_overflow = true;  // costs the wait; off if a CUDA graph is captured
  double timeout_s = 600;      // limit of that wait (watch.h)
};

// Device memory of the norm and of the factor.
struct GradientNorm {
  DeviceBuffer<double> squared{1};
  DeviceBuffer<float> factor{1};
  DeviceBuffer<double> workspace{reduction_slots};
};

struct RankGradient : Watched {
  std::size_t elements = 0;
  HalfPointer half;         // gradients in 16 bits, or null; overwritten with their mean
  float* values = nullptr;  // the gradient itself if half is null, else memory for
                            // average_unscaled, or null
  const GradientNorm* norm = nullptr;

  // Returns the gradient without its factor.
  Gradient arrived() const { return half ? Gradient(half) : Gradient(values); }
};

// Returns the gradient that the kernels of a step read, with its factor. Call reduce() first.
Gradient unscaled(const RankGradient& rank, const GradientOptions& options);

// Writes the unscaled gradient from element `first` on to `values`, in fp32, and averages it over
// the ranks: the gradient of tensors that never freeze. Call reduce() first. Throws
// Error{Exit::usage} if `values` is null.
void average_unscaled(const NcclApi& nccl, std::span<const RankGradient> ranks, std::size_t first,
                      const GradientOptions& options);

// Performs the reduction above; `averaged` is true if the step needs the mean. Returns false if
// a gradient of any rank overflowed. Throws Error{Exit::failure} naming the call or the rank that
// failed.
bool reduce(const NcclApi& nccl, std::span<const RankGradient> ranks, bool averaged,
            const GradientOptions& options);

}  // namespace lambcast::cuda
