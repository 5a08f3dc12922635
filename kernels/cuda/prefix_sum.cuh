// Exclusive prefix sums over a warp or block, for stream compaction.
#pragma once

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

// Returns the sum over the lanes before this one, and over all lanes in `total`.
__device__ inline unsigned warp_prefix(unsigned x, unsigned& total) {
  unsigned sum = x;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned below = __shfl_up_sync(all_lanes, sum, offset);
    if (threadIdx.x % 32 >= static_cast<unsigned>(offset)) sum += below;
  }
  total = __shfl_sync(all_lanes, sum, 31);
  return sum - x;
}

// Returns the same for a block. All its threads must call it.
__device__ inline unsigned block_prefix(unsigned x, unsigned& total) {
  __shared__ unsigned per_warp[finish_threads / 32];
  const int warp = threadIdx.x / 32, all_warps = blockDim.x / 32;
  unsigned of_warp;
  unsigned before = warp_prefix(x, of_warp);
  __syncthreads();
  if (threadIdx.x % 32 == 0) per_warp[warp] = of_warp;
  __syncthreads();
  total = 0;
  for (int w = 0; w < all_warps; ++w) {
    if (w < warp) before += per_warp[w];
    total += per_warp[w];
  }
  return before;
}

}  // namespace lambcast::cuda
