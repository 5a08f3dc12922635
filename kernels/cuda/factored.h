// Adafactor and CAME on parts of tensors on the GPU: the rounds of reference/{adafactor,came}.h
// with reordered sums. Between the rounds the caller sums `sums` over the ranks that share the
// tensor.
//
//   round   Adafactor                       bytes   CAME                                bytes
//   1       read g                          4       read g                              4
//   2       read g, p: |u|^2, |p|^2         8       read g: |u|^2                       4
//   3       read g, p; write p              12      read g, m; write m; residual's sums 12
//   4                                               read m, p; write p                  12
//   whole   matrices                        24                                          32
//
// plus 1/4 byte of workspace in each direction for rows and columns, against 88 and 160 in
// Colossal-AI. Each round computes the update u again from g and the thin moments instead of
// storing it. A vector (one row) keeps v instead: Adafactor 32, CAME 40 (its residual is not
// needed).
//
// If |p|^2 is not needed (no scale_parameter, or rms_stays_zero), or is kept since the weights were
// written (FactoredTensor::kept), Adafactor's round 2 does not read p: 20 instead of 24.
//
// Sums are computed in single precision. The relative error of a column's sum is at most 2 2^-24 =
// 1.2e-7, that of a row's, which a warp adds up in a tree, 9 2^-24 = 5.4e-7, and those of |u|^2 and
// |p|^2 3 2^-24 = 1.8e-7. Gradients of 1.8e19 and more, whose squares exceed a float, make their
// row and column infinite or NaN. Only the thin vectors use double precision: 1/32 operation per
// element.
//
// All tensors of a model are in one launch per phase: a table divides them into pieces, which the
// blocks share. The sums of a tensor have the same bits for any device, grid and other tensors.
// Launches per step: Adafactor 7, CAME 12.
//
// 1 / sqrt of a moment is computed once for each row and column, not for each element.
//
// Calls only enqueue work. Pointers need no alignment, but buffers aligned to 16 bytes with rows of
// a multiple of four elements are read fastest.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/tensor_pieces.h"
#include "kernels/reference/came.h"

namespace lambcast::cuda {

// Thin vectors of a factored moment, in device memory.
struct FactoredState {
  float* row = nullptr;     // rows of the whole tensor
  float* column = nullptr;  // columns of the whole tensor
  float* row_mean = nullptr;
};

struct FactoredTensor {
  reference::Part part;  // the part's place in every buffer below
  float* p = nullptr;
  const float* g = nullptr;
  float* m = nullptr;           // momentum of CAME, and of Adafactor with beta1
  float* v = nullptr;           // second moment of a vector
  FactoredState moment;         // second moment of a matrix
  FactoredState residual;       // residual of CAME
  double* sums = nullptr;       // rows + columns of the whole tensor, at least 2; summed over ranks
  double* workspace = nullptr;  // factored_workspace() doubles, untouched between rounds
  double* kept = nullptr;       // Adafactor: |p|^2 by segments, factored_kept() doubles, or null
};
std::size_t factored_workspace(const reference::Part& part);
std::size_t factored_kept(const reference::Part& part);

// The rectangle of rows that a part overlaps, the number of its tiles, and how its elements can be
// read.
struct FactoredRectangle {
  std::size_t first = 0, rows = 0, columns = 0, parts = 0, tiles = 0;
  std::size_t roots = 0;       // start in the workspace of 1 / sqrt of columns, then of rows
  bool aligned = false;        // whether all non-empty buffers are aligned to 16 bytes
  bool quads_in_rows = false;  // whether quads are within rows and their roots aligned
};

// Tensors and tables in device memory.
struct FactoredBatch {
  const FactoredTensor* tensors = nullptr;
  const FactoredRectangle* rectangles = nullptr;  // one for each tensor
  int count = 0;
  TensorPieces tiles;      // tiles of matrices, for sums of rows and columns
  TensorPieces slots;      // slots of the matrices' rows and columns
  TensorPieces stretches;  // segments of all elements
  TensorPieces vectors;    // segments of vectors
};

// The tensors and the tables of their pieces, as owned memory of the current device.
class FactoredTensors {
 public:
  explicit FactoredTensors(std::span<const FactoredTensor> tensors);
  FactoredBatch batch() const;

 private:
  DeviceBuffer<FactoredTensor> tensors_;
  DeviceBuffer<FactoredRectangle> rectangles_;
  DeviceBuffer<TensorPiece> tiles_, slots_, stretches_, vectors_;
};

// The rounds in order. `step` counts from 1. The comment behind each declaration is the content of
// `sums` after the round.
cudaError_t adafactor_moment(const FactoredBatch& batch, const reference::Adafactor& rule,
                             cudaStream_t stream);  // rows, columns; nothing for a vector
cudaError_t adafactor_norms(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream);  // |u|^2, |p|^2
cudaError_t adafactor_apply(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream);
// Measures the norms of weights that tensors keep, 4 bytes per element. Call it before the first
// step, and after anything except adafactor_apply has changed weights (a checkpoint, an average
// over ranks); otherwise steps would have a wrong size. Then the steps have the same bits as
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
