// PowerSGD on one matrix on the GPU: the semantics of reference/low_rank.h, sums reordered. Every
// call only enqueues work; pointers to float need no alignment.
//
// Bytes per element of the matrix at rank 4 (a higher one reads it again per four columns, from the
// cache where it fits): project 12, back_project 4, expand 12 together 28; the factors beside them
// are thin.
//
// Products are added up in single precision, four at a time, and then in pairs of floats: an entry
// of a factor is within 3 2^-24 of the sizes of its products, summed, and its own rounding. Double
// precision is left to what blocks bring together. A result is the same bits whatever the grid.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/reference/low_rank.h"

namespace lambcast::cuda {

struct LowRank {
  reference::MatrixShape shape;
  int rank = 4;
  const float* x = nullptr;     // the matrix, read by project alone; null in further turns: M is
                                // whole already, 4 bytes
  float* owed = nullptr;        // of the call before; M = x + owed afterwards, then what is owed
  float* p = nullptr;           // rows x rank
  float* q = nullptr;           // columns x rank
  double* workspace = nullptr;  // low_rank_workspace() doubles
};
std::size_t low_rank_workspace(reference::MatrixShape shape, int rank);

cudaError_t project(const LowRank& matrix, cudaStream_t stream);         // p from x, owed and q
cudaError_t orthonormalise(const LowRank& matrix, cudaStream_t stream);  // p, after its all-reduce
cudaError_t back_project(const LowRank& matrix, cudaStream_t stream);    // q from M and p
// sent = P Q', and owed = M - sent; after the all-reduce of q.
cudaError_t expand(const LowRank& matrix, float* sent, cudaStream_t stream);

}  // namespace lambcast::cuda
