// The thin moments of Adafactor and CAME: sums over rows and columns, and the update of the
// moments.
#include <algorithm>

#include "kernels/cuda/factored.cuh"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

// Squares of a quad of g.
struct SquaredGradient {
  float eps;
  using Loaded = Quad;
  static constexpr int ahead = 4;  // rows loaded ahead

  __device__ SquaredGradient of_tile(const FactoredTensor&, const FactoredRectangle&,
                                     std::size_t) const {
    return *this;
  }
  template <typename Access>
  __device__ Quad load(const FactoredTensor& a, const Access& access, std::size_t,
                       std::size_t k) const {
    return access.load(a.g, k);
  }
  template <typename Access>
  __device__ Quad operator()(const FactoredTensor&, const Access& access, std::size_t,
                             const Quad& g) const {
    return each_of(access, [&](int i) { return g.at[i] * g.at[i] + eps; });
  }
};
struct Momentum {
  float b1, one_minus_b1, eps, clip;

  // Returns m after the clipped update.
  __device__ float moved(float m, float u) const { return b1 * m + one_minus_b1 * (u * clip); }
};

// Updates CAME's momentum, and returns the squared distance of the clipped update from it.
struct ClippedResidual {
  Momentum momentum;
  const float* row;  // 1 / sqrt of the moment
  float scale;
  Quad column;
  struct Loaded {
    Quad g, m;
    float row;
  };
  static constexpr int ahead = 2;

  template <typename Access>
  __device__ Loaded load(const FactoredTensor& a, const Access& access, std::size_t i,
                         std::size_t k) const {
    return {access.load(a.g, k), access.load(a.m, k), row[i]};
  }
  template <typename Access>
  __device__ Quad operator()(const FactoredTensor& a, const Access& access, std::size_t k,
                             const Loaded& x) const {
    Quad m, residual;
    const float by_row = x.row * scale;
    residual = each_of(access, [&](int i) {
      const float u = x.g.at[i] * (by_row * column.at[i]);
      m.at[i] = momentum.moved(x.m.at[i], u);
      const float from = u * momentum.clip - m.at[i];
      return from * from + momentum.eps;
    });
    access.store(a.m, k, m);
    return residual;
  }
};
struct Residual {
  float b1, one_minus_b1, eps;
  double clip_threshold;

  __device__ Momentum of_block(const FactoredTensor& a) const {
    const auto clip = [&] { return 1 / max(sqrt(*a.sums / elements_of(a)) / clip_threshold, 1.0); };
    return {b1, one_minus_b1, eps, block_value(clip)};
  }
  __device__ ClippedResidual of_tile(const FactoredTensor& a, const FactoredRectangle& r,
                                     std::size_t j) const {
    const InverseRoots roots = inverse_roots(a, r, a.moment);
    ClippedResidual value{of_block(a), roots.row + r.first, roots.scale, {}};
    for (int i = 0; i < 4; ++i) value.column.at[i] = j + i < r.columns ? roots.column[j + i] : 0;
    return value;
  }
};

// Returns which of the four elements in row i from column j on belong to the part.
__device__ PartQuad own_columns(const FactoredTensor& a, const FactoredRectangle& r, std::size_t i,
                                std::size_t j) {
  PartQuad part{0};
  for (int c = 0; c < 4; ++c) {
    const std::size_t e = (r.first + i) * r.columns + j + c;
    const bool own = j + c < r.columns && e >= a.part.begin && e < a.part.end;
    part.own |= static_cast<unsigned>(own) << c;
  }
  return part;
}

// Calls add(i, values of row i) for every eighth row of [i, end). Value::ahead rows are loaded at
// once if all belong to the part.
template <typename Value, typename Add>
__device__ void for_each_row(const FactoredTensor& a, const FactoredRectangle& r, std::size_t i,
                             std::size_t end, std::size_t j, const Value& value, Add add) {
  constexpr int ahead = Value::ahead;
  constexpr std::size_t last = (ahead - 1) * warps;
  const std::size_t step = warps * r.columns;
  while (i < end) {
    const std::size_t e = (r.first + i) * r.columns, k = e + j - a.part.begin;
    if (r.aligned && r.quads_in_rows && i + last < end && e >= a.part.begin &&
        e + last * r.columns + r.columns <= a.part.end) {
      Quad x[ahead] = {};
      if (j < r.columns) {
        const WholeQuad whole;
        typename Value::Loaded loaded[ahead];
        for (int n = 0; n < ahead; ++n)
          loaded[n] = value.load(a, whole, i + n * warps, k + n * step);
        for (int n = 0; n < ahead; ++n) x[n] = value(a, whole, k + n * step, loaded[n]);
      }
      for (int n = 0; n < ahead; ++n) add(i + n * warps, x[n]);
      i += ahead * warps;
    } else {
      const PartQuad part = own_columns(a, r, i, j);
      add(i, value(a, part, k, value.load(a, part, i, k)));
      i += warps;
    }
  }
}

// Sums values over rows and over columns, for blocks of 128 columns by 256 rows: a lane has four
// columns, a warp every eighth row. No value is negative, so a column's sum is as exact as its
// values. A row's sum, added in a tree in single precision, is within 7 2^-24 of theirs. Slots:
// columns by parts of rows, then rows by tiles of columns.
template <typename Value>
__global__ void __launch_bounds__(threads, 3)  // otherwise the compiler spills for a fourth block
    sums_kernel(const FactoredBatch batch, const Value of_all) {
  __shared__ float high[warps][tile_columns], low[warps][tile_columns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = blockIdx.x; k < batch.tiles.count; k += gridDim.x) {
    const TensorPiece piece = batch.tiles.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    double* const row_slots = a.workspace + r.parts * r.columns;
    const std::size_t part = piece.index / r.tiles, tile = piece.index % r.tiles;
    const std::size_t first = tile * tile_columns, end = min((part + 1) * part_rows, r.rows);
    const auto value = of_all.of_tile(a, r, first + 4 * lane);
    PairSum columns[4];
    const auto add = [&](std::size_t i, const Quad& x) {
      for (int c = 0; c < 4; ++c) columns[c].add(x.at[c]);
      const float row = warp_sum((x.at[0] + x.at[1]) + (x.at[2] + x.at[3]));
      if (lane == 0) row_slots[i * r.tiles + tile] = row;
    };
    for_each_row(a, r, part * part_rows + warp, end, first + 4 * lane, value, add);
    __syncthreads();
    for (int c = 0; c < 4; ++c) {
      high[warp][4 * lane + c] = columns[c].high;
      low[warp][4 * lane + c] = columns[c].low;
    }
    __syncthreads();
    const std::size_t j = first + threadIdx.x;
    if (threadIdx.x >= tile_columns || j >= r.columns) continue;
    PairSum sum;
    for (int w = 0; w < warps; ++w) sum.add({high[w][threadIdx.x], low[w][threadIdx.x]});
    a.workspace[part * r.columns + j] = sum.total();
  }
}

// The rows or the columns of a piece of slots.
struct Slots {
  bool rows;
  std::size_t first;

  __device__ Slots(const FactoredTensor& a, const TensorPiece& piece) {
    const std::size_t of_rows = ceil_div(a.part.whole.rows, slot_rows), index = piece.index;
    rows = index < of_rows;
    first = rows ? index * slot_rows : (index - of_rows) * slot_columns;
  }
};

// Adds up the slots, and writes zeros for rows and columns of other parts.
__global__ void __launch_bounds__(threads) finish_sums(const FactoredBatch batch) {
  __shared__ double of_warp[warps][slot_columns];
  const std::size_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int k = blockIdx.x; k < batch.slots.count; k += gridDim.x) {
    const TensorPiece piece = batch.slots.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const FactoredRectangle r = batch.rectangles[piece.tensor];
    const reference::MatrixShape whole = a.part.whole;
    const Slots slots(a, piece);
    double sum = 0;
    if (slots.rows) {
      const std::size_t row = slots.first + threadIdx.x;
      const std::size_t i = row - a.part.first_row - r.first;  // wraps to a huge number if negative
      const double* const row_slots = a.workspace + r.parts * r.columns + i * r.tiles;
      for (std::size_t tile = 0; i < r.rows && tile < r.tiles; ++tile) sum += row_slots[tile];
      if (row < whole.rows) a.sums[row] = sum;
      continue;
    }
    const std::size_t column = slots.first + lane, j = column - a.part.first_column;
    for (std::size_t part = warp; j < r.columns && part < r.parts; part += warps) {
      sum += a.workspace[part * r.columns + j];
    }
    __syncthreads();
    of_warp[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= whole.columns) continue;
    for (int w = 1; w < warps; ++w) sum += of_warp[w][lane];
    a.sums[whole.rows + column] = sum;
  }
}

// Adds a matrix's sums over all ranks to the moment, or CAME's residual, and stores its 1 / sqrt.
__global__ void __launch_bounds__(threads)
    absorb_kernel(const FactoredBatch batch, bool residual, float b, float rest) {
  for (int k = blockIdx.x; k < batch.slots.count; k += gridDim.x) {
    const TensorPiece piece = batch.slots.at[k];
    const FactoredTensor& a = batch.tensors[piece.tensor];
    const FactoredState s = residual ? a.residual : a.moment;
    const reference::MatrixShape whole = a.part.whole;
    const Slots slots(a, piece);
    const std::size_t i = slots.first + threadIdx.x;
    const std::size_t end =
        slots.rows ? whole.rows : min(whole.columns, slots.first + slot_columns);
    float x = 0;
    if (i < end) {
      float* const moment = slots.rows ? s.row : s.column;
      const double sum = a.sums[slots.rows ? i : whole.rows + i];
      const double share = 1 / static_cast<double>(slots.rows ? whole.columns : whole.rows);
      x = moment[i] = b * moment[i] + rest * static_cast<float>(sum * share);
      float* const roots =
          reinterpret_cast<float*>(a.workspace + batch.rectangles[piece.tensor].roots);
      roots[slots.rows ? whole.columns + i : i] = 1 / sqrtf(x);
    }
    if (!slots.rows) continue;
    const double of_rows = block_sum(static_cast<double>(x));
    if (threadIdx.x == 0) a.workspace[piece.index] = of_rows;
  }
}
// Uses a block for each tensor.
__global__ void __launch_bounds__(finish_threads)
    mean_kernel(const FactoredBatch batch, bool residual) {
  const FactoredTensor& a = batch.tensors[blockIdx.x];
  if (!matrix(a)) return;
  const std::size_t rows = a.part.whole.rows;
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < ceil_div(rows, slot_rows); i += blockDim.x) {
    sum += a.workspace[i];
  }
  sum = block_sum(sum);
  if (threadIdx.x > 0) return;
  *(residual ? a.residual : a.moment).row_mean =
      static_cast<float>(sum / static_cast<double>(rows));
}

__global__ void __launch_bounds__(threads)
    vector_momentum(const FactoredBatch batch, const Residual residual) {
  for (int k = blockIdx.x; k < batch.vectors.count; k += gridDim.x) {
    const TensorPiece piece = batch.vectors.at[k];
    const FactoredTensor a = batch.tensors[piece.tensor];
    const Momentum momentum = residual.of_block(a);
    const auto load = [&](const auto& access, std::size_t e) { return access.load(a.g, e); };
    const RootsOfVector roots{a.v};
    for_each_quad_of<2>(a, batch.rectangles[piece.tensor], piece, load,
                        [&](const auto& access, std::size_t e, const Quad& g) {
                          const Quad by = roots.next(access, e, g);
                          Quad m = access.load(a.m, e);
                          for (int i = 0; i < 4; ++i)
                            m.at[i] = momentum.moved(m.at[i], g.at[i] * by.at[i]);
                          access.store(a.m, e, m);
                        });
  }
}

template <typename Value>
cudaError_t sum_up(const FactoredBatch& batch, const Value& value, cudaStream_t stream) {
  if (const auto e = launch_over(batch.tiles, sums_kernel<Value>, stream, batch, value)) return e;
  return launch_over(batch.slots, finish_sums, stream, batch);
}

}  // namespace

cudaError_t sum_squared_gradient(const FactoredBatch& batch, double eps, cudaStream_t stream) {
  return sum_up(batch, SquaredGradient{static_cast<float>(eps)}, stream);
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

cudaError_t absorb(const FactoredBatch& batch, bool residual, double beta, cudaStream_t stream) {
  if (batch.count == 0) return cudaSuccess;
  if (const auto e = launch_over(batch.slots, absorb_kernel, stream, batch, residual,
                                 static_cast<float>(beta), static_cast<float>(1 - beta))) {
    return e;
  }
  launch(mean_kernel, batch.count, finish_threads, stream, batch, residual);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
