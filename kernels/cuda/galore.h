// The weights of GaLore on the GPU: what comes back from the small space, and the decay, in one
// pass; the last lines of reference/galore.h, to the bit.
//
// A step of a matrix: project of low_rank.h with the gradient for M (or, of a matrix of fewer rows
// than columns, back_project, which gives R transposed), eight_bit_adam, galore_apply. Bytes per
// element: 4 read by project, 8 here, with the 16-bit copy of the weights 10; the factors beside
// them are thin, 4 rank / columns.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/half_precision.h"
#include "kernels/reference/galore.h"

namespace lambcast::cuda {

struct GaloreWeights {
  reference::MatrixShape shape;
  int rank = 0;                    // 0: nothing is projected, `rows` is the update, as long as p
  const float* rows = nullptr;     // rows x rank: Adam's update R, or the basis
  const float* columns = nullptr;  // columns x rank: the basis, or R transposed
  float* p = nullptr;
  HalfPointer half_p;
};

// p = p - lr scale rows columns', or p - lr rows where rank is 0; then p = p - lr weight_decay p.
cudaError_t galore_apply(const GaloreWeights& weights, const reference::GaloreOptions& options,
                         cudaStream_t stream);

}  // namespace lambcast::cuda
