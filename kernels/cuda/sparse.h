// Sparse messages on the GPU: the semantics of reference/sparse.h, to the bit.
//
// The k largest magnitudes are found exactly and without sorting: three passes, 11, 10 and 10 bits
// of the magnitude from the top, count how many elements have which digit, and one block chooses
// the digit that the k-th has. Of the last pass every block keeps its counts, so that one more pass
// knows where its elements go and writes them out in order. Counts are whole numbers, added by
// atomics in shared memory: the same bits every time.
//
// Bytes per element: add_owed 12, top_k 4 x 4 and 12 k / N more; random_k and add_at touch k only.
// No selection can read less than 4 and write 12 k / N; an exact one that keeps no list of
// candidates, which may be as long as the buffer, reads it once for each digit and once to take.
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

// Doubles of workspace for top_k, 8 MB: counts of every block.
constexpr unsigned top_k_blocks = 2048;
constexpr std::size_t top_k_workspace = 1 + (2048 + 1026 * std::size_t{top_k_blocks}) / 2;

// Takes k elements of c, whose places become 0: what is left is owed.
cudaError_t top_k(float* c, std::size_t elements, const SparseMessage& message, double* workspace,
                  cudaStream_t stream);
cudaError_t random_k(float* c, std::size_t elements, std::uint64_t seed,
                     const SparseMessage& message, cudaStream_t stream);

// x[indices[i]] += share * values[i]; indices are all different.
cudaError_t add_at(float* x, const SparseMessage& message, float share, cudaStream_t stream);

}  // namespace lambcast::cuda
