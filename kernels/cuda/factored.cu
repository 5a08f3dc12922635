#include "kernels/cuda/factored.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

// What a block of sums takes at a time.
constexpr std::size_t part_rows = 256;
constexpr int lane_columns = 4;  // of a lane, 32 apart
constexpr std::size_t tile_columns = 32 * lane_columns;
constexpr std::size_t stretch_elements = 8192;  // of kernels over elements

FactoredRectangle rectangle_of(const reference::Part& part) {
  const std::size_t first = part.begin / part.columns;
  const std::size_t end = (part.end + part.columns - 1) / part.columns;
  const std::size_t rows = part.size() == 0 ? 0 : end - first;
  return {first, rows, part.columns, (rows + part_rows - 1) / part_rows,
          (part.columns + tile_columns - 1) / tile_columns};
}

__device__ float inverse_root(const FactoredState& s, std::size_t i, std::size_t j) {
  return 1 / (sqrtf(s.row[i] / *s.row_mean) * sqrtf(s.column[j]));
}

// Where element k of the part lies in the whole.
struct Place {
  std::size_t row, column;
};
__device__ Place place_of(const reference::Part& part, std::size_t k) {
  const std::size_t e = part.begin + k;
  return {part.first_row + e / part.columns, part.first_column + e % part.columns};
}

__device__ bool matrix(const FactoredTensor& a) { return a.part.whole.rows > 1; }

// The update before it is clipped. Vectors move v on where `beta` is not negative.
struct Update {
  float beta, one_minus_beta, eps1;

  __device__ float operator()(const FactoredTensor& a, std::size_t k) const {
    const float g = a.g[k];
    if (matrix(a)) {
      const Place at = place_of(a.part, k);
      return g * inverse_root(a.moment, at.row, at.column);
    }
    if (beta >= 0) a.v[k] = beta * a.v[k] + one_minus_beta * (g * g + eps1);
    return g / sqrtf(a.v[k]);
  }
};
Update update_of(double beta, double eps1) {
  return {static_cast<float>(beta), static_cast<float>(1 - beta), static_cast<float>(eps1)};
}
__device__ float update_as_it_is(const FactoredTensor& a, std::size_t k) {
  return Update{-1, 0, 0}(a, k);
}

__device__ double elements_of(const FactoredTensor& a) {
  return static_cast<double>(a.part.whole.rows) * static_cast<double>(a.part.whole.columns);
}

// What thread 0 works out in double for all of its block.
template <typename F>
__device__ float block_value(F f) {
  __shared__ float result;
  __syncthreads();
  if (threadIdx.x == 0) result = static_cast<float>(f());
  __syncthreads();
  return result;
}

struct SquaredGradient {
  float eps;
  __device__ SquaredGradient of_block(const FactoredTensor&) const { return *this; }
  __device__ float operator()(const FactoredTensor& a, std::size_t k) const {
    return a.g[k] * a.g[k] + eps;
  }
};
SquaredGradient squared_gradient(double eps) { return {static_cast<float>(eps)}; }

// Moves CAME's momentum; the square of how far the update, clipped, lies from it.
struct ClippedResidual {
  float b1, one_minus_b1, eps, clip;

  __device__ float operator()(const FactoredTensor& a, std::size_t k) const {
    const float u = update_as_it_is(a, k) * clip;
    const float m = a.m[k] = b1 * a.m[k] + one_minus_b1 * u;
    return (u - m) * (u - m) + eps;
  }
};
struct Residual {
  float b1, one_minus_b1, eps;
  double clip_threshold;

  __device__ ClippedResidual of_block(const FactoredTensor& a) const {
    const auto clip = [&] { return 1 / max(sqrt(*a.sums / elements_of(a)) / clip_threshold, 1.0); };
    return {b1, one_minus_b1, eps, block_value(clip)};
  }
};

// Sums of value(a, k) over rows and over columns, for blocks of 128 columns by 256 rows: a lane has
// four columns, a warp every eighth row. No value is negative, so that a column's sum is as exact
// as its values and a row's, which a tree adds in single precision, within 7 2^-24 of theirs.
// Slots: columns by parts of rows, then rows by tiles of columns.
template <typename Value>
__global__ void __launch_bounds__(threads, 4)  // else the compiler spills for a fifth block
    sums_kernel(const FactoredBatch batch, const Value of_all) {
  __shared__ float high[warps][tile_columns], low[warps][tile_columns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = blockIdx.x; k < batch.tiles.count; k += gridDim.x) {
    const TensorPiece piece = batch.tiles.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    double* const row_slots = a.workspace + r.parts * r.columns;
    const auto value = of_all.of_block(a);
    const std::size_t part = piece.index / r.tiles, tile = piece.index % r.tiles;
    const std::size_t first = tile * tile_columns, end = min((part + 1) * part_rows, r.rows);
    PairSum columns[lane_columns];
    for (std::size_t i = part * part_rows + warp; i < end; i += warps) {
      float x[lane_columns];
      for (int c = 0; c < lane_columns; ++c) {
        const std::size_t j = first + lane + 32 * c, e = (r.first + i) * r.columns + j;
        const bool own = j < r.columns && e >= a.part.begin && e < a.part.end;
        x[c] = own ? value(a, e - a.part.begin) : 0.0f;
        columns[c].add(x[c]);
      }
      const float row = warp_sum((x[0] + x[1]) + (x[2] + x[3]));
      if (lane == 0) row_slots[i * r.tiles + tile] = row;
    }
    __syncthreads();
    for (int c = 0; c < lane_columns; ++c) {
      high[warp][lane + 32 * c] = columns[c].high;
      low[warp][lane + 32 * c] = columns[c].low;
    }
    __syncthreads();
    const std::size_t j = first + threadIdx.x;
    if (threadIdx.x >= tile_columns || j >= r.columns) continue;
    PairSum sum;
    for (int w = 0; w < warps; ++w) sum.add({high[w][threadIdx.x], low[w][threadIdx.x]});
    a.workspace[part * r.columns + j] = sum.total();
  }
}

// Adds up the slots, and writes zeros for rows and columns of other parts.
__global__ void __launch_bounds__(threads) finish_sums(const FactoredBatch batch) {
  for (int k = blockIdx.x; k < batch.slots.count; k += gridDim.x) {
    const TensorPiece piece = batch.slots.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    const reference::MatrixShape whole = a.part.whole;
    const std::size_t s = static_cast<std::size_t>(piece.index) * threads + threadIdx.x;
    if (s >= whole.rows + whole.columns) continue;
    const double* const row_slots = a.workspace + r.parts * r.columns;
    double sum = 0;
    if (s < whole.rows) {
      const std::size_t i = s - a.part.first_row - r.first;  // far above r.rows where below
      for (std::size_t tile = 0; i < r.rows && tile < r.tiles; ++tile) {
        sum += row_slots[i * r.tiles + tile];
      }
    } else {
      const std::size_t j = s - whole.rows - a.part.first_column;
      for (std::size_t part = 0; j < r.columns && part < r.parts; ++part) {
        sum += a.workspace[part * r.columns + j];
      }
    }
    a.sums[s] = sum;
  }
}

// A block for each tensor: a matrix's sums over all ranks into the moment, or CAME's residual.
__global__ void __launch_bounds__(finish_threads)
    moment_kernel(const FactoredBatch batch, bool residual, float b, float rest) {
  const FactoredTensor& a = batch.tensors[blockIdx.x];
  if (!matrix(a)) return;
  const FactoredState& s = residual ? a.residual : a.moment;
  const reference::MatrixShape whole = a.part.whole;
  const double of_row = 1 / static_cast<double>(whole.columns);
  const double of_column = 1 / static_cast<double>(whole.rows);
  PairSum rows;
  for (std::size_t i = threadIdx.x; i < whole.rows; i += blockDim.x) {
    s.row[i] = b * s.row[i] + rest * static_cast<float>(a.sums[i] * of_row);
    rows.add(s.row[i]);
  }
  const double sum = block_sum(rows.total());
  if (threadIdx.x == 0) *s.row_mean = static_cast<float>(sum * of_column);
  for (std::size_t j = threadIdx.x; j < whole.columns; j += blockDim.x) {
    s.column[j] = b * s.column[j] + rest * static_cast<float>(a.sums[whole.rows + j] * of_column);
  }
}

// Calls f(k) for the elements of a stretch.
template <typename F>
__device__ void for_each_element(const FactoredTensor& a, const TensorPiece& piece, F f) {
  const std::size_t begin = static_cast<std::size_t>(piece.index) * stretch_elements;
  const std::size_t end = min(begin + stretch_elements, a.part.end - a.part.begin);
  for (std::size_t k = begin + threadIdx.x; k < end; k += threads) f(k);
}

__global__ void __launch_bounds__(threads)
    norms_kernel(const FactoredBatch batch, const Update of_vectors, bool weights) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const bool reads = weights && !a.kept;
    RunningSum updates, squares;
    for_each_element(a, piece, [&](std::size_t e) {
      const float p = reads ? a.p[e] : 0.0f;
      add_square(updates, of_vectors(a, e));
      add_square(squares, p);
    });
    const double of_updates = block_sum(updates.total()), of_weights = block_sum(squares.total());
    if (threadIdx.x == 0) {
      a.workspace[2 * piece.index] = of_updates;
      a.workspace[2 * piece.index + 1] = of_weights;
    }
  }
}
// |p|^2 of a stretch, in the order of norms_kernel, for the steps to come.
__device__ void keep(const FactoredTensor& a, const TensorPiece& piece, const RunningSum& squares) {
  const double sum = block_sum(squares.total());
  if (threadIdx.x == 0) a.kept[piece.index] = sum;
}
__global__ void __launch_bounds__(threads) keep_kernel(const FactoredBatch batch) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    if (!a.kept) continue;
    RunningSum squares;
    for_each_element(a, piece, [&](std::size_t e) { add_square(squares, a.p[e]); });
    keep(a, piece, squares);
  }
}
// A block for each tensor.
__global__ void __launch_bounds__(threads) finish_norms(const FactoredBatch batch) {
  const FactoredTensor& a = batch.tensors[blockIdx.x];
  const std::size_t size = a.part.end - a.part.begin;
  double updates = 0, squares = 0;
  for (std::size_t b = threadIdx.x; b * stretch_elements < size; b += blockDim.x) {
    updates += a.workspace[2 * b];
    squares += a.kept ? a.kept[b] : a.workspace[2 * b + 1];
  }
  updates = block_sum(updates);
  squares = block_sum(squares);
  if (threadIdx.x == 0) {
    a.sums[0] = updates;
    a.sums[1] = squares;
  }
}

// Rate as a function of the weights' root mean square, which only the device knows.
struct AdafactorRate {
  double base, eps2, decay, clip_threshold;
  bool scaled, rms_stays_zero;
  float b1, one_minus_b1;
};
__global__ void __launch_bounds__(threads)
    adafactor_kernel(const FactoredBatch batch, const AdafactorRate r) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const auto lr = [&] {
      const double rms = r.rms_stays_zero ? 0.0 : sqrt(a.sums[1] / elements_of(a));
      return r.scaled ? r.base * max(r.eps2, rms) : r.base;
    };
    const auto clip = [&] { return max(sqrt(a.sums[0] / elements_of(a)) / r.clip_threshold, 1.0); };
    const float length = block_value([&] { return lr() / clip(); });
    const float decay = block_value([&] { return lr() * r.decay; });
    RunningSum squares;
    for_each_element(a, piece, [&](std::size_t e) {
      float move = length * update_as_it_is(a, e);
      if (a.m) move = a.m[e] = r.b1 * a.m[e] + r.one_minus_b1 * move;
      const float p = a.p[e] - decay * a.p[e];
      a.p[e] = p - move;
      if (a.kept) add_square(squares, p - move);
    });
    if (a.kept) keep(a, piece, squares);
  }
}

__global__ void __launch_bounds__(threads)
    vector_momentum(const FactoredBatch batch, const Residual residual) {
  for (int k = blockIdx.x; k < batch.vectors.count; k += gridDim.x) {
    const TensorPiece piece = batch.vectors.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const auto moved = residual.of_block(a);
    for_each_element(a, piece, [&](std::size_t e) { moved(a, e); });
  }
}

__global__ void __launch_bounds__(threads)
    came_kernel(const FactoredBatch batch, float lr, float decay) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    for_each_element(a, piece, [&](std::size_t e) {
      float move = a.m[e];
      if (matrix(a)) {
        const Place at = place_of(a.part, e);
        move *= inverse_root(a.residual, at.row, at.column);
      }
      const float p = a.p[e] - decay * a.p[e];
      a.p[e] = p - lr * move;
    });
  }
}

template <typename Value>
cudaError_t sum_up(const FactoredBatch& batch, const Value& value, cudaStream_t stream) {
  if (const auto e = launch_over(batch.tiles, sums_kernel<Value>, stream, batch, value)) return e;
  return launch_over(batch.slots, finish_sums, stream, batch);
}

cudaError_t absorb(const FactoredBatch& batch, bool residual, double beta, cudaStream_t stream) {
  if (batch.count == 0) return cudaSuccess;
  launch(moment_kernel, batch.count, finish_threads, stream, batch, residual,
         static_cast<float>(beta), static_cast<float>(1 - beta));
  return cudaGetLastError();
}

cudaError_t norms(const FactoredBatch& batch, const Update& of_vectors, bool weights,
                  cudaStream_t stream) {
  if (batch.count == 0) return cudaSuccess;
  if (const auto e =
          launch_over(batch.stretches, norms_kernel, stream, batch, of_vectors, weights)) {
    return e;
  }
  launch(finish_norms, batch.count, threads, stream, batch);
  return cudaGetLastError();
}

DeviceBuffer<FactoredRectangle> rectangles_of(std::span<const FactoredTensor> tensors) {
  std::vector<FactoredRectangle> all;
  for (const FactoredTensor& a : tensors) all.push_back(rectangle_of(a.part));
  return DeviceBuffer<FactoredRectangle>(std::span<const FactoredRectangle>(all));
}

std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

bool is_matrix(const FactoredTensor& a) { return a.part.whole.rows > 1; }
std::size_t tiles_of(const FactoredTensor& a) {
  const FactoredRectangle r = rectangle_of(a.part);
  return is_matrix(a) ? r.parts * r.tiles : 0;
}
std::size_t slots_of(const FactoredTensor& a) {
  return is_matrix(a) ? ceil_div(a.part.whole.rows + a.part.whole.columns, threads) : 0;
}
std::size_t stretches_of(const FactoredTensor& a) {
  return ceil_div(a.part.size(), stretch_elements);
}
std::size_t vectors_of(const FactoredTensor& a) { return is_matrix(a) ? 0 : stretches_of(a); }

}  // namespace

std::size_t factored_kept(const reference::Part& part) {
  return ceil_div(part.size(), stretch_elements);
}

std::size_t factored_workspace(const reference::Part& part) {
  const FactoredRectangle r = rectangle_of(part);
  return std::max(r.parts * r.columns + r.rows * r.tiles, 2 * factored_kept(part));
}

FactoredTensors::FactoredTensors(std::span<const FactoredTensor> tensors)
    : tensors_(tensors),
      rectangles_(rectangles_of(tensors)),
      tiles_(pieces_of(tensors, tiles_of)),
      slots_(pieces_of(tensors, slots_of)),
      stretches_(pieces_of(tensors, stretches_of)),
      vectors_(pieces_of(tensors, vectors_of)) {}

FactoredBatch FactoredTensors::batch() const {
  return {.tensors = tensors_.data(),
          .rectangles = rectangles_.data(),
          .count = static_cast<int>(tensors_.size()),
          .tiles = list_of(tiles_),
          .slots = list_of(slots_),
          .stretches = list_of(stretches_),
          .vectors = list_of(vectors_)};
}

cudaError_t adafactor_moment(const FactoredBatch& batch, const reference::Adafactor& rule,
                             cudaStream_t stream) {
  return sum_up(batch, squared_gradient(rule.options.eps1), stream);
}

cudaError_t adafactor_norms(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const double beta = rule.beta(step);
  if (const auto e = absorb(batch, false, beta, stream)) return e;
  const bool weights = rule.options.scale_parameter && !rule.options.rms_stays_zero;
  return norms(batch, update_of(beta, rule.options.eps1), weights, stream);
}

cudaError_t adafactor_apply(const FactoredBatch& batch, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const reference::AdafactorOptions& o = rule.options;
  reference::Adafactor unscaled = rule;
  unscaled.options.scale_parameter = false;
  return launch_over(batch.stretches, adafactor_kernel, stream, batch,
                     AdafactorRate{unscaled.rate(0, step), o.eps2, o.weight_decay, o.clip_threshold,
                                   o.scale_parameter, o.rms_stays_zero, static_cast<float>(o.beta1),
                                   static_cast<float>(1 - o.beta1)});
}

cudaError_t adafactor_keep(const FactoredBatch& batch, cudaStream_t stream) {
  return launch_over(batch.stretches, keep_kernel, stream, batch);
}

cudaError_t came_moment(const FactoredBatch& batch, const reference::Came& rule,
                        cudaStream_t stream) {
  return sum_up(batch, squared_gradient(rule.options.eps1), stream);
}

cudaError_t came_norm(const FactoredBatch& batch, const reference::Came& rule,
                      cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (const auto e = absorb(batch, false, o.beta2, stream)) return e;
  return norms(batch, update_of(o.beta2, o.eps1), false, stream);
}

cudaError_t came_momentum(const FactoredBatch& batch, const reference::Came& rule,
                          cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  const Residual residual{static_cast<float>(o.beta1), static_cast<float>(1 - o.beta1),
                          static_cast<float>(o.eps2), o.clip_threshold};
  if (const auto e = launch_over(batch.vectors, vector_momentum, stream, batch, residual)) {
    return e;
  }
  return sum_up(batch, residual, stream);
}

cudaError_t came_apply(const FactoredBatch& batch, const reference::Came& rule,
                       cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (const auto e = absorb(batch, true, o.beta3, stream)) return e;
  return launch_over(batch.stretches, came_kernel, stream, batch, static_cast<float>(o.lr),
                     static_cast<float>(o.lr * o.weight_decay));
}

}  // namespace lambcast::cuda
