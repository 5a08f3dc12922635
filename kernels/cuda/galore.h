// GaLore's projection of the gradient into the small space, and its update of the weights with
// decay, on the GPU, in one pass each. These are the lines of reference/galore.h before and after
// Adam's step; the update of the weights has the reference's bits.
//
// A step of a model is three launches over all its tensors, matrices of any shapes and vectors:
// galore_project, eight_bit_adam (eight_bit.h), galore_apply. Tables divide the tensors into
// pieces, which the blocks share. The results have the same bits for any grid and other tensors.
// Bytes per element: 4 read by the projection, 8 by the update, and 10 with the 16-bit copy of the
// weights. The factors are thin: 4 rank / columns (or rows, if fewer).
//
// Both passes are products in tiles of 128 x 64 (matrix_tiles.cuh) that read their factors again
// from the cache, and are limited by arithmetic at the usual ranks. An entry of R is within (16 + n
// / 16) 2^-24 of the sum of the magnitudes of its n products, with n the shorter side. The move of
// the weights is rounded as in the reference.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/half_precision.h"
#include "kernels/cuda/tensor_pieces.h"
#include "kernels/reference/galore.h"

namespace lambcast::cuda {

struct GaloreTensor {
  reference::MatrixShape shape;
  int rank = 0;                  // 0: no projection; `low` holds the gradient and then
                                 // Adam's update of it, as long as p
  const float* g = nullptr;      // gradient, if it is projected
  const float* basis = nullptr;  // columns x rank, or rows x rank if there are fewer rows
  float* low = nullptr;          // R, rows x rank or rank x columns; then Adam's update of it
  float* p = nullptr;
  HalfPointer half_p;
};

// Tensors and tables in device memory.
struct GaloreBatch {
  const GaloreTensor* tensors = nullptr;
  TensorPieces products;   // tiles of R
  TensorPieces stretches;  // tiles of the weights; segments of tensors without projection
};

// The tensors and the tables of their pieces, as owned memory of the current device.
class GaloreTensors {
 public:
  explicit GaloreTensors(std::span<const GaloreTensor> tensors);
  GaloreBatch batch() const;

 private:
  DeviceBuffer<GaloreTensor> tensors_;
  DeviceBuffer<TensorPiece> products_, stretches_;
};

// R = g basis, or basis' g.
cudaError_t galore_project(const GaloreBatch& batch, cudaStream_t stream);

// p = p - lr scale R basis' (or basis R), or p - lr R if rank is 0; then p = p - lr weight_decay p.
cudaError_t galore_apply(const GaloreBatch& batch, const reference::GaloreOptions& options,
                         cudaStream_t stream);

}  // namespace lambcast::cuda
