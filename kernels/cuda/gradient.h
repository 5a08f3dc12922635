// Overflow check, norm, unscale and clip on the GPU: the semantics of reference/gradient.h.
//
// One pass measures (norm and overflow together), one pass scales; the host never waits in
// between: the clip factor is computed on the device, and an overflow is left for the caller to
// read, or to all-reduce, when it wants.
//
// Bytes per element: measure_gradient 2 (fp16) or 4; unscale_and_clip 6 from fp16, 8 in place.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/reduction.h"

struct __half;

namespace lambcast::cuda {

struct GradientSummary {
  float norm;    // ||g||_2; not finite when any element is not
  int overflow;  // 1 when any element is infinite or NaN
};

cudaError_t measure_gradient(const __half* g, std::size_t elements, GradientSummary* summary,
                             double* workspace, cudaStream_t stream);
cudaError_t measure_gradient(const float* g, std::size_t elements, GradientSummary* summary,
                             double* workspace, cudaStream_t stream);

// g = half_g * factor, or g *= factor, with factor = 1 / (loss_scale * max(clip, 1)) and
// clip = (norm / loss_scale + 1e-6) / limit; limit 0 only unscales.
cudaError_t unscale_and_clip(const __half* half_g, float* g, std::size_t elements,
                             const GradientSummary* summary, double loss_scale, double limit,
                             cudaStream_t stream);
cudaError_t unscale_and_clip(float* g, std::size_t elements, const GradientSummary* summary,
                             double loss_scale, double limit, cudaStream_t stream);

}  // namespace lambcast::cuda
