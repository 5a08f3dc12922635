// Overflow check, norm, unscaling and clipping on the GPU, with the semantics of
// reference/gradient.h.
//
// measure_gradient leaves the squared norm in device memory as one double, and gradient_factor
// turns it into the factor that unscales and clips, one float. The host does not wait in between.
// The squared norm is infinite or NaN exactly if an element is, because squares of finite floats
// that would overflow are computed in double. It is within 1.8e-7 of the exact value: sums are kept
// in pairs of floats (RunningSum in device.cuh), with 4 operations of single precision per element
// and none of double, while a sum in double takes three.
//
// In the compression stage every rank has its own gradient. The squared norm is then averaged over
// the ranks before the factor is computed, 8 bytes (nccl/shared_norm.h): all ranks clip by the root
// mean square of the norms, ClipNorm::shared, and an overflow on any rank reaches all. Otherwise
// each rank clips by its own norm, ClipNorm::local.
//
// Kernels that take a Gradient (gradient_view.h) multiply by the factor when they read it.
// unscale() is for consumers that need fp32 values in memory.
//
// Bytes per element: measure_gradient 2 (fp16, bf16) or 4; gradient_factor none; unscale 6 from 16
// bits, 8 in place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/gradient_view.h"
#include "kernels/cuda/reduction.h"

namespace lambcast::cuda {

// *squared_norm = ||g||^2, still multiplied by the square of the loss scale: the factor of `g` is
// not applied.
cudaError_t measure_gradient(const Gradient& g, std::size_t elements, double* squared_norm,
                             double* workspace, cudaStream_t stream);

// *factor = 1 / (loss_scale * max(clip, 1)) with clip = (sqrt(*squared_norm) / loss_scale + 1e-6) /
// limit; with limit 0 it only unscales. Both pointers are device memory.
cudaError_t gradient_factor(const double* squared_norm, double loss_scale, double limit,
                            float* factor, cudaStream_t stream);

// to = g * factor, in fp32. An fp32 gradient may be unscaled in place.
cudaError_t unscale(const Gradient& g, float* to, std::size_t elements, cudaStream_t stream);

}  // namespace lambcast::cuda
