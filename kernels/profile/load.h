// Two kernels that serve the profiler only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace lambcast::cuda {

// x = pseudo-random in (shift - 0.5, shift + 0.5): equal memory contents would flatter the clocks.
cudaError_t fill_random(float* x, std::size_t elements, float shift, cudaStream_t stream);

// A kernel that does nothing: what a launch costs.
cudaError_t empty(cudaStream_t stream);

}  // namespace lambcast::cuda
