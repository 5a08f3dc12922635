// Adafactor and CAME on parts of tensors on the GPU: the rounds of reference/{adafactor,came}.h,
// sums reordered. Between the rounds the caller sums `sums` over the ranks that share the tensor.
//
//   round   Adafactor                       bytes   CAME                                bytes
//   1       read g                          4       read g                              4
//   2       read g, p: |u|^2, |p|^2         8       read g: |u|^2                       4
//   3       read g, p; write p              12      read g, m; write m; residual's sums 12
//   4                                               read m, p; write p                  12
//   whole   matrices                        24                                          32
//
// with 1/4 byte more of workspace each way for rows and columns, against Colossal-AI's 88 and 160.
// Each round computes the update u again from g and the thin moments instead of storing it.
// A vector (one row) keeps v instead: Adafactor 32, CAME 40 (its residual is not needed).
//
// If |p|^2 is not needed (no scale_parameter, or rms_stays_zero), or is kept since the weights were
// written (FactoredTensor::kept), Adafactor's round 2 does not read p: 20 instead of 24.
//
// Sums run in single precision. The sum of a column is within 2 2^-24 = 1.2e-7 of its exact value,
// that of a row, which a warp adds up by a tree, within 9 2^-24 = 5.4e-7, |u|^2 and |p|^2 of their
// elements within 3 2^-24 = 1.8e-7. Gradients of 1.8e19 and more, whose square no float holds, make
// their row and column infinite or NaN. Only the thin vectors use double precision: 1/32 operation
// per element.
//
// All tensors of a model are in one launch per phase: a table cuts them into pieces, which the
// blocks share out. The sums of a tensor have the same bits for any device, grid and other tensors.
// Launches of a step: Adafactor 7, CAME 12.
//
// 1 / sqrt of a moment is computed once for each row and column, not for each element.
//
// Everything only enqueues work. Pointers need no alignment, but buffers aligned to 16 bytes with
// rows of a multiple of four are read fastest.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/tensor_pieces.h"
#include "kernels/reference/came.h"

namespace lambcast::cuda {

// Thin vectors of a factored moment in device memory.
struct FactoredState {
  float* row = nullptr;     // rows of the whole tensor
  float* column = nullptr;  // columns of it
  float* row_mean = nullptr;
};

struct FactoredTensor {
  reference::Part part;  // its stretch of every buffer below
  float* p = nullptr;
  const float* g = nullptr;
  float* m = nullptr;           // CAME; Adafactor with beta1
  float* v = nullptr;           // of vectors
  FactoredState moment;         // of matrices
  FactoredState residual;       // CAME
  double* sums = nullptr;       // rows + columns of the whole, at least 2: what travels
  double* workspace = nullptr;  // factored_workspace() doubles, untouched between rounds
  double* kept = nullptr;  // Adafactor: |p|^2 by stretches, factored_kept() doubles; null: none
};
std::size_t factored_workspace(const reference::Part& part);
std::size_t factored_kept(const reference::Part& part);

// The rectangle of rows that a part's stretch touches, into how many tiles it is cut, and how its
// elements can be read.
struct FactoredRectangle {
  std::size_t first = 0, rows = 0, columns = 0, parts = 0, tiles = 0;
  std::size_t roots = 0;       // where in the workspace 1 / sqrt of columns, then rows, begins
  bool aligned = false;        // to 16 bytes: all that has elements
  bool quads_in_rows = false;  // every fourth element begins four of one row, their roots aligned
};

// Device memory.
struct FactoredBatch {
  const FactoredTensor* tensors = nullptr;
  const FactoredRectangle* rectangles = nullptr;  // of each
  int count = 0;
  TensorPieces tiles;      // of matrices, whose rows and columns are summed
  TensorPieces slots;      // of their rows and columns
  TensorPieces stretches;  // of all elements
  TensorPieces vectors;    // of those of vectors
};

// The tensors and the tables of their pieces, as owned device memory on the current device.
class FactoredTensors {
 public:
  explicit FactoredTensors(std::span<const FactoredTensor> tensors);
  FactoredBatch batch() const;

 private:
  DeviceBuffer<FactoredTensor> tensors_;
  DeviceBuffer<FactoredRectangle> rectangles_;
  DeviceBuffer<TensorPiece> tiles_, slots_, stretches_, vectors_;
};

// The rounds in their order. `step` counts from 1. In `sums` of every tensor:
cudaError_t adafactor_moment(const FactoredBatch& batch, const reference::Adafactor& rule,
                             cudaStream_t stream);  // rows, columns; nothing for a vector
cudaError_t adafactor_norms(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream);  // |u|^2, |p|^2
cudaError_t adafactor_apply(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream);
// Measures the norms that tensors keep of their weights, 4 bytes per element. Call it before the
// first step, and after anything except adafactor_apply has moved weights (a checkpoint, an average
// over ranks); steps would have a wrong size otherwise. Then the steps have the bits of those
// without kept norms.
cudaError_t adafactor_keep(const FactoredBatch& batch, cudaStream_t stream);

cudaError_t came_moment(const FactoredBatch& batch, const reference::Came& rule,
                        cudaStream_t stream);
cudaError_t came_norm(const FactoredBatch& batch, const reference::Came& rule,
                      cudaStream_t stream);  // |u|^2
cudaError_t came_momentum(const FactoredBatch& batch, const reference::Came& rule,
                          cudaStream_t stream);  // rows, columns of the residual
cudaError_t came_apply(const FactoredBatch& batch, const reference::Came& rule,
                       cudaStream_t stream);

}  // namespace lambcast::cuda
