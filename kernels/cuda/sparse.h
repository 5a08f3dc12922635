// Sparse messages on the GPU: the semantics of reference/sparse.h, to the bit.
//
// The k largest magnitudes are found exactly and without sorting: eight passes, four bits of the
// magnitude each from the top, count how many elements lie in which sixteenth, and a block of one
// chooses the sixteenth that holds the k-th. Two more passes write them out in order. No atomics:
// the same bits every time.
//
// Bytes per element: add_owed 12, top_k 4 x 10 and 4 k / N more; random_k and add_at touch k only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/reduction.h"

namespace lambcast::cuda {

// owed += x: what is meant now.
cudaError_t add_owed(const float* x, float* owed, std::size_t elements, cudaStream_t stream);

struct SparseMessage {
  std::uint32_t* indices = nullptr;  // k, in rising order
  float* values = nullptr;           // k
  std::size_t kept = 0;              // k, 1 to N, else cudaErrorInvalidValue
};

// Doubles of workspace for top_k: counts of every block.
constexpr std::size_t top_k_workspace = 16 * std::size_t{reduction_slots} + 4;

// Takes k elements of c, whose places become 0: what is left is owed.
cudaError_t top_k(float* c, std::size_t elements, const SparseMessage& message, double* workspace,
                  cudaStream_t stream);
cudaError_t random_k(float* c, std::size_t elements, std::uint64_t seed,
                     const SparseMessage& message, cudaStream_t stream);

// x[indices[i]] += share * values[i]; indices are all different.
cudaError_t add_at(float* x, const SparseMessage& message, float share, cudaStream_t stream);

}  // namespace lambcast::cuda
