// Kernels that serve the profiler only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

struct __half;

namespace lambcast::cuda {

// x = pseudo-random in [low, high): equal memory contents would flatter the clocks.
cudaError_t fill_random(float* x, std::size_t elements, float low, float high, cudaStream_t stream);
cudaError_t fill_random(__half* x, std::size_t elements, float low, float high,
                        cudaStream_t stream);

// Reads all of x, which must be zero. Afterwards a cache no larger than x holds nothing else, and
// nothing that still has to be written back. Writing x would leave dirty lines, at the cost of the
// kernel that is timed next.
cudaError_t sweep_cache(unsigned* x, std::size_t words, cudaStream_t stream);

// An empty kernel, to time a launch.
cudaError_t empty(cudaStream_t stream);

}  // namespace lambcast::cuda
