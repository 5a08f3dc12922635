// LAMB and both stages of 1-bit LAMB on the GPU, with the semantics of reference/lamb.h.
//
// All tensors of a model are in one launch per phase. States are flat buffers, and a table divides
// them into pieces of one tensor each, which the blocks share. Norms of tensors use one slot per
// piece, so that they have the same bits for any device and grid.
//
//   phase      warm-up (lamb_step)                       compression (onebit_lamb_step)
//   moments    read p m v g, write m v          24       read signs m v vf p, write m vf    24.125
//   ratio      one block per tensor: norms to step       norms and largest ratio to step
//   apply      read p m v, write p              16       read signs p v, write p            12.125
//   ... with the copy half_p                    18                                          14.125
//
// Bytes are per element. A gradient in 16 bits saves 2 of the warm-up's moments (22). Without
// weight decay the compression stage does not read p (20.125). A mask adds 8: 4 for the mask
// itself, and 4 for the masked m, which is read instead of signs. Pointers to float must be 16-byte
// aligned.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/gradient_view.h"
#include "kernels/cuda/half_precision.h"
#include "kernels/options.h"

namespace lambcast::cuda {

// A run of elements within one tensor.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  int tensor = 0;
};

// The pieces of all tensors in order, and the start of each tensor's pieces (tensors + 1 numbers).
// A layout may start after the first element, so that two layouts share buffers.
struct PieceTable {
  std::vector<Piece> pieces;
  std::vector<int> first_piece;
};
PieceTable cut_into_pieces(const TensorLayout& tensors);

// Returns the doubles in the workspace of the kernels below: three sums per piece.
inline std::size_t lamb_workspace(const PieceTable& table) { return 3 * table.pieces.size(); }

// Buffers in device memory. Per-tensor arrays have one entry per tensor.
struct LambState {
  const Piece* pieces = nullptr;
  const int* first_piece = nullptr;
  int piece_count = 0;
  int tensors = 0;

  float* p = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  HalfPointer half_p;  // null: no 16-bit copy of the weights

  float* running_average = nullptr;  // per tensor, of the trust ratio; null in plain LAMB
  float* running_weight = nullptr;
  float* trust_ratio = nullptr;  // per tensor, output
  float* step_length = nullptr;  // per tensor, learning rate times the factor of the stage
  double* workspace = nullptr;
  const ParameterGroup* groups = nullptr;  // per tensor; null: the options apply to all
  const double* lr =
      nullptr;  // device memory, so that a graph can replay a step; null: the options' rate
};

struct CompressedLambState {
  float* fresh_v = nullptr;
  float* scaling = nullptr;      // per tensor
  float* last_factor = nullptr;  // per tensor; initially 1
  const float* mask = nullptr;   // null: all ones
  Unseen unseen = Unseen::stay;

  // The packed averaged momentum, which is decoded when it is used.
  const std::uint8_t* signs = nullptr;
  const float* scales = nullptr;  // per chunk
  std::size_t chunk = 0;
  // Number of elements with a gradient. If the padding persists (`persistent_tail`), m[elements ..
  // tail_end) gets its decoded value unchanged.
  std::size_t elements = 0;
  std::size_t tail_end = 0;
};

struct RunningAverage {
  double coeff_beta = 0.9;
  CoefficientAverage how = CoefficientAverage::bias_corrected;
};

// LAMB and the warm-up stage of 1-bit LAMB: three launches. `step` counts from 1 and is used only
// for bias correction.
cudaError_t lamb_step(const LambState& state, const Gradient& g, const LambOptions& options,
                      const RunningAverage& average, cudaStream_t stream, int step = 1);

// LAMB in two halves, for shards of tensors whose norms are summed over ranks in between: for the
// distributed LAMBs of Colossal-AI, which sums two numbers tensor by tensor, and of Apex, which
// sums them as one vector. `squares` receives |p|^2 and |update|^2 of every tensor of the shard.
// The running average is not changed.
cudaError_t lamb_moments(const LambState& state, const Gradient& g, const LambOptions& options,
                         double* squares, cudaStream_t stream, int step = 1);
cudaError_t lamb_apply(const LambState& state, const LambOptions& options, const double* squares,
                       cudaStream_t stream, int step = 1);

// norms[t] = sum |v| of tensor t, which decides when compression may begin (reference/freeze.h). 4
// bytes per element, two launches.
cudaError_t variance_norms(const LambState& state, double* norms, cudaStream_t stream);

// The compression stage: three launches.
cudaError_t onebit_lamb_step(const LambState& state, const CompressedLambState& compressed,
                             const OnebitLambOptions& options, CoefficientAverage how,
                             cudaStream_t stream);

// scaling[t] = mean(r) / r_t, once at the freeze; 4 bytes per element, three launches. A tensor
// with zero momentum gets 1 and is left out of the mean.
cudaError_t scaling_coefficients(const LambState& state, float* scaling, cudaStream_t stream);

}  // namespace lambcast::cuda
