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

// Reads all of x, which must be zero: afterwards a cache no larger than x holds nothing else, and
// none of it still has to be written back. Writing x would leave the cache full of that, at the
// cost of whatever is timed next.
cudaError_t sweep_cache(unsigned* x, std::size_t words, cudaStream_t stream);

// A kernel that does nothing: what a launch costs.
cudaError_t empty(cudaStream_t stream);

}  // namespace lambcast::cuda
