// Sparse messages on the GPU; bit for bit the results of reference/sparse.h.
//
// Bytes per element: add_owed 12; random_k and add_at only access k elements. The selection of the
// largest elements is in top_k.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/reduction.h"

namespace lambcast::cuda {

// Adds x to the error feedback, which gives the compensated values of this call.
cudaError_t add_owed(const float* x, float* owed, std::size_t elements, cudaStream_t stream);

struct SparseMessage {
  std::uint32_t* indices = nullptr;  // k, in increasing order
  float* values = nullptr;           // k
  std::size_t kept = 0;              // k, 1 to N, else cudaErrorInvalidValue
};

// Takes one element of each of k buckets of c.
cudaError_t random_k(float* c, std::size_t elements, std::uint64_t seed,
                     const SparseMessage& message, cudaStream_t stream);

// x[indices[i]] += share * values[i]; all indices are different.
cudaError_t add_at(float* x, const SparseMessage& message, float share, cudaStream_t stream);

}  // namespace lambcast::cuda
