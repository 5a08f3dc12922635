// Overflow check, norm, unscale and clip on the GPU: the semantics of reference/gradient.h.
//
// One pass measures, one pass scales; the host never waits in between: what lies between them is
// one double in device memory, the squared norm. It answers both questions: it is infinite or NaN
// exactly when an element is, for the squares of finite floats that could overflow are taken in
// double. The caller reads it, or leaves it on the device, as it likes. It is within 1.8e-7 of
// itself: sums run in pairs of floats (RunningSum in device.cuh), 4 operations of single
// precision per element and none of double, where a sum in double takes three.
//
// Where every rank holds its own gradient (the compression stage) it must be averaged over the
// ranks between the two passes, 8 bytes (nccl/shared_norm.h): then all clip by the root mean square
// of the norms, ClipNorm::shared, and each sees an overflow of any. Without that each clips by its
// own norm, ClipNorm::local, and knows of its own overflow only.
//
// Kernels that take a Gradient (gradient_view.h) read the factor of gradient_factor from device
// memory and multiply as they read. unscale_and_clip is for other consumers, which need fp32 values
// in memory.
//
// Bytes per element: measure_gradient 2 (fp16, bf16) or 4; gradient_factor none; unscale_and_clip 6
// from 16 bits, 8 in place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/gradient_view.h"
#include "kernels/cuda/half_precision.h"
#include "kernels/cuda/reduction.h"

namespace lambcast::cuda {

// *squared_norm = ||g||^2, still multiplied by the square of the loss scale: the factor of `g` is
// not read.
cudaError_t measure_gradient(const Gradient& g, std::size_t elements, double* squared_norm,
                             double* workspace, cudaStream_t stream);

// *factor = 1 / (loss_scale * max(clip, 1)) with clip = (sqrt(*squared_norm) / loss_scale + 1e-6) /
// limit; limit 0 only unscales. Both pointers are device memory.
cudaError_t gradient_factor(const double* squared_norm, double loss_scale, double limit,
                            float* factor, cudaStream_t stream);

// g = half_g * factor, or g *= factor, with the factor of gradient_factor.
cudaError_t unscale_and_clip(HalfPointer half_g, float* g, std::size_t elements,
                             const double* squared_norm, double loss_scale, double limit,
                             cudaStream_t stream);
cudaError_t unscale_and_clip(float* g, std::size_t elements, const double* squared_norm,
                             double loss_scale, double limit, cudaStream_t stream);

}  // namespace lambcast::cuda
