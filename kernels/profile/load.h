// Kernels that only the profiler uses.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

struct __half;

namespace lambcast::cuda {

// x = pseudo-random in [low, high). Equal memory contents would raise the clocks.
cudaError_t fill_random(float* x, std::size_t elements, float low, float high, cudaStream_t stream);
cudaError_t fill_random(__half* x, std::size_t elements, float low, float high,
                        cudaStream_t stream);

// Reads all of x, which must be zero. Afterwards a cache no larger than x contains only x, with
// nothing to be written back. Writing x would leave modified lines, which the next timed kernel
// would have to write back.
cudaError_t sweep_cache(unsigned* x, std::size_t words, cudaStream_t stream);

// Runs an empty kernel, to time a launch.
cudaError_t empty(cudaStream_t stream);

}  // namespace lambcast::cuda
