// The outer step of local SGD and DiLoCo, and the average with neighbours, on the GPU; bit for bit
// the results of reference/local_steps.h. Pointers are aligned to 16 bytes.
//
// Bytes per element: outer_step 24 with momentum (read anchor, mean, velocity; write anchor,
// velocity, p), 16 without; weighted_sum of k buffers 4 k + 4.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "kernels/reference/local_steps.h"

namespace lambcast::cuda {

// State of the outer step. p, from which the replicas continue, may be the memory of the mean.
struct OuterState {
  float* anchor = nullptr;
  float* velocity = nullptr;  // null without momentum
  const float* mean = nullptr;
  float* p = nullptr;
  std::size_t elements = 0;
};
cudaError_t outer_step(const OuterState& state, const reference::OuterOptions& options,
                       cudaStream_t stream);

constexpr std::size_t most_neighbours = 8;

// x = sum_i weights[i] buffers[i], for up to most_neighbours buffers, else cudaErrorInvalidValue.
cudaError_t weighted_sum(std::span<const float* const> buffers, std::span<const float> weights,
                         float* x, std::size_t elements, cudaStream_t stream);

}  // namespace lambcast::cuda
