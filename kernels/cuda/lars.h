// LARS on the GPU, all tensors in one launch per phase, with the semantics of reference/lars.h. It
// has two halves like LAMB, so that shards of tensors can sum their norms over ranks in between.
//
// Bytes per element: lars_norms 8 (read p, g), lars_apply 20 (read p, g, velocity; write p,
// velocity), with the fp16 copy 22. A gradient in 16 bits saves 2 of each.
#pragma once

#include "kernels/cuda/lamb.h"
#include "kernels/reference/lars.h"

namespace lambcast::cuda {

// Both halves use the pieces, p, m (the velocity), half_p, step_length, workspace and groups of
// `state`. `squares` receives |p|^2 and |g|^2 of every tensor.
cudaError_t lars_norms(const LambState& state, const Gradient& g, double* squares,
                       cudaStream_t stream);
cudaError_t lars_apply(const LambState& state, const Gradient& g,
                       const reference::LarsOptions& options, const double* squares,
                       cudaStream_t stream);

}  // namespace lambcast::cuda
