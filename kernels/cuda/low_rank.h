// PowerSGD on one matrix on the GPU: the semantics of reference/low_rank.h with reordered sums.
// Calls only enqueue work; pointers to float need no alignment.
//
// Bytes per element of the matrix at rank 4: project 12, back_project 4, expand 12, together 28;
// the factors are thin. A higher rank reads the matrix again per four columns, from the cache if it
// fits.
//
// Products are added up in single precision, four at a time, and then in pairs of floats. An entry
// of a factor is within 3 2^-24 of the sum of the magnitudes of its products, plus its own
// rounding. Only the sums over blocks use double precision. A result has the same bits for any
// grid.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/reference/low_rank.h"

namespace lambcast::cuda {

struct LowRank {
  reference::MatrixShape shape;
  int rank = 4;
  const float* x = nullptr;     // the matrix, read only by project; null in further iterations, if
                                // M is complete already, 4 bytes
  float* owed = nullptr;        // error feedback; M after project, the new error after expand
  float* p = nullptr;           // rows x rank
  float* q = nullptr;           // columns x rank
  double* workspace = nullptr;  // low_rank_workspace() doubles
};
std::size_t low_rank_workspace(reference::MatrixShape shape, int rank);

cudaError_t project(const LowRank& matrix, cudaStream_t stream);         // p from M and q
cudaError_t orthonormalise(const LowRank& matrix, cudaStream_t stream);  // p, after its all-reduce
cudaError_t back_project(const LowRank& matrix, cudaStream_t stream);    // q from M and p
// sent = P Q', and the new error is M - sent; called after the all-reduce of q.
cudaError_t expand(const LowRank& matrix, float* sent, cudaStream_t stream);

}  // namespace lambcast::cuda
