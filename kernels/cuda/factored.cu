#include "kernels/cuda/factored.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

// What a block of sums takes at a time.
constexpr std::size_t part_rows = 256;
constexpr int lane_columns = 4;  // of a lane, 32 apart
constexpr std::size_t tile_columns = 32 * lane_columns;

// The rectangle of rows that the part's stretch touches.
struct Rectangle {
  std::size_t first, rows, columns, parts, tiles;
};
Rectangle rectangle_of(const reference::Part& part) {
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
constexpr Update as_it_is{-1, 0, 0};
__device__ float update_as_it_is(const FactoredTensor& a, std::size_t k) {
  return Update{-1, 0, 0}(a, k);
}

// What thread 0 works out in double for all of its block; once in a kernel.
template <typename F>
__device__ float block_value(F f) {
  __shared__ float result;
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
  double elements, clip_threshold;

  __device__ ClippedResidual of_block(const FactoredTensor& a) const {
    const auto clip = [&] { return 1 / max(sqrt(*a.sums / elements) / clip_threshold, 1.0); };
    return {b1, one_minus_b1, eps, block_value(clip)};
  }
};

// Sums of value(a, k) over rows and over columns, for blocks of 128 columns by 256 rows: a lane has
// four columns, a warp every eighth row. No value is negative, so that a column's sum is as exact
// as its values and a row's, which a tree adds in single precision, within 7 2^-24 of theirs.
// Slots: columns by parts of rows, then rows by tiles of columns.
template <typename Value>
__global__ void __launch_bounds__(threads, 4)  // else the compiler spills for a fifth block
    sums_kernel(FactoredTensor a, const Rectangle r, const Value of_all) {
  __shared__ float high[warps][tile_columns], low[warps][tile_columns];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  double* const row_slots = a.workspace + r.parts * r.columns;
  const auto value = of_all.of_block(a);
  for (std::size_t b = blockIdx.x; b < r.parts * r.tiles; b += gridDim.x) {
    const std::size_t part = b / r.tiles, tile = b % r.tiles, first = tile * tile_columns;
    const std::size_t end = min((part + 1) * part_rows, r.rows);
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
__global__ void __launch_bounds__(threads) finish_sums(FactoredTensor a, const Rectangle r) {
  const reference::MatrixShape whole = a.part.whole;
  const double* const row_slots = a.workspace + r.parts * r.columns;
  for (std::size_t s = blockIdx.x * std::size_t{threads} + threadIdx.x;
       s < whole.rows + whole.columns; s += static_cast<std::size_t>(gridDim.x) * threads) {
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

// One block: the sums over all ranks into the moment.
__global__ void __launch_bounds__(finish_threads)
    moment_kernel(FactoredTensor a, FactoredState s, float b, float rest) {
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

template <typename F>
__device__ void for_each_element(std::size_t n, F f) {
  for (std::size_t k = blockIdx.x * std::size_t{threads} + threadIdx.x; k < n;
       k += static_cast<std::size_t>(gridDim.x) * threads) {
    f(k);
  }
}

__global__ void __launch_bounds__(threads)
    norms_kernel(FactoredTensor a, const Update update, bool weights) {
  RunningSum updates, squares;
  for_each_element(a.part.end - a.part.begin, [&](std::size_t k) {
    const float p = weights ? a.p[k] : 0.0f;
    add_square(updates, update(a, k));
    add_square(squares, p);
  });
  const double of_updates = block_sum(updates.total()), of_weights = block_sum(squares.total());
  if (threadIdx.x == 0) {
    a.workspace[2 * blockIdx.x] = of_updates;
    a.workspace[2 * blockIdx.x + 1] = of_weights;
  }
}
__global__ void __launch_bounds__(finish_threads) finish_norms(FactoredTensor a, unsigned blocks) {
  double updates = 0, squares = 0;
  for (unsigned b = threadIdx.x; b < blocks; b += blockDim.x) {
    updates += a.workspace[2 * b];
    squares += a.workspace[2 * b + 1];
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
  double base, eps2, decay, elements, clip_threshold;
  bool scaled, rms_stays_zero;
  float b1, one_minus_b1;
};
__global__ void __launch_bounds__(threads) adafactor_kernel(FactoredTensor a, AdafactorRate r) {
  const auto lr = [&] {
    const double rms = r.rms_stays_zero ? 0.0 : sqrt(a.sums[1] / r.elements);
    return r.scaled ? r.base * max(r.eps2, rms) : r.base;
  };
  const auto clip = [&] { return max(sqrt(a.sums[0] / r.elements) / r.clip_threshold, 1.0); };
  const float length = block_value([&] { return lr() / clip(); });
  const float decay = block_value([&] { return lr() * r.decay; });
  for_each_element(a.part.end - a.part.begin, [&](std::size_t k) {
    float move = length * update_as_it_is(a, k);
    if (a.m) move = a.m[k] = r.b1 * a.m[k] + r.one_minus_b1 * move;
    const float p = a.p[k] - decay * a.p[k];
    a.p[k] = p - move;
  });
}

__global__ void __launch_bounds__(threads)
    vector_momentum(FactoredTensor a, const Residual residual) {
  const auto moved = residual.of_block(a);
  for_each_element(a.part.end - a.part.begin, [&](std::size_t k) { moved(a, k); });
}

__global__ void __launch_bounds__(threads) came_kernel(FactoredTensor a, float lr, float decay) {
  for_each_element(a.part.end - a.part.begin, [&](std::size_t k) {
    float move = a.m[k];
    if (matrix(a)) {
      const Place at = place_of(a.part, k);
      move *= inverse_root(a.residual, at.row, at.column);
    }
    const float p = a.p[k] - decay * a.p[k];
    a.p[k] = p - lr * move;
  });
}

bool is_matrix(const FactoredTensor& a) { return a.part.whole.rows > 1; }
std::size_t blocks_of(std::size_t items) { return (items + threads - 1) / threads; }

template <typename Value>
cudaError_t sum_up(const FactoredTensor& a, const Value& value, cudaStream_t stream) {
  const Rectangle r = rectangle_of(a.part);
  unsigned blocks = 0;
  if (r.rows > 0) {
    if (const auto e = grid_size(sums_kernel<Value>, r.parts * r.tiles, blocks)) return e;
    launch(sums_kernel<Value>, blocks, threads, stream, a, r, value);
  }
  const std::size_t count = a.part.whole.rows + a.part.whole.columns;
  if (const auto e = grid_size(finish_sums, blocks_of(count), blocks)) return e;
  launch(finish_sums, blocks, threads, stream, a, r);
  return cudaGetLastError();
}

cudaError_t absorb(const FactoredTensor& a, const FactoredState& state, double beta,
                   cudaStream_t stream) {
  launch(moment_kernel, 1, finish_threads, stream, a, state, static_cast<float>(beta),
         static_cast<float>(1 - beta));
  return cudaGetLastError();
}

cudaError_t norms(const FactoredTensor& a, const Update& update, bool weights,
                  cudaStream_t stream) {
  unsigned blocks = 0;
  if (const auto e = grid_size(norms_kernel, blocks_of(a.part.size()), blocks)) return e;
  launch(norms_kernel, blocks, threads, stream, a, update, weights);
  launch(finish_norms, 1, finish_threads, stream, a, blocks);
  return cudaGetLastError();
}

template <typename Kernel, typename... Arguments>
cudaError_t over_elements(Kernel kernel, const FactoredTensor& a, cudaStream_t stream,
                          const Arguments&... arguments) {
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, blocks_of(a.part.size()), blocks)) return e;
  launch(kernel, blocks, threads, stream, a, arguments...);
  return cudaGetLastError();
}

double elements_of(const FactoredTensor& a) { return static_cast<double>(a.part.whole.elements()); }

}  // namespace

std::size_t factored_workspace(const reference::Part& part) {
  const Rectangle r = rectangle_of(part);
  return std::max(r.parts * r.columns + r.rows * r.tiles, 2 * std::size_t{reduction_slots});
}

cudaError_t adafactor_moment(const FactoredTensor& a, const reference::Adafactor& rule,
                             cudaStream_t stream) {
  return is_matrix(a) ? sum_up(a, squared_gradient(rule.options.eps1), stream) : cudaSuccess;
}

cudaError_t adafactor_norms(const FactoredTensor& a, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const double beta = rule.beta(step);
  if (!is_matrix(a)) return norms(a, update_of(beta, rule.options.eps1), true, stream);
  if (const auto e = absorb(a, a.moment, beta, stream)) return e;
  return norms(a, as_it_is, true, stream);
}

cudaError_t adafactor_apply(const FactoredTensor& a, const reference::Adafactor& rule, int step,
                            cudaStream_t stream) {
  const reference::AdafactorOptions& o = rule.options;
  reference::Adafactor unscaled = rule;
  unscaled.options.scale_parameter = false;
  return over_elements(adafactor_kernel, a, stream,
                       AdafactorRate{unscaled.rate(0, step), o.eps2, o.weight_decay, elements_of(a),
                                     o.clip_threshold, o.scale_parameter, o.rms_stays_zero,
                                     static_cast<float>(o.beta1), static_cast<float>(1 - o.beta1)});
}

cudaError_t came_moment(const FactoredTensor& a, const reference::Came& rule, cudaStream_t stream) {
  return is_matrix(a) ? sum_up(a, squared_gradient(rule.options.eps1), stream) : cudaSuccess;
}

cudaError_t came_norm(const FactoredTensor& a, const reference::Came& rule, cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (!is_matrix(a)) return norms(a, update_of(o.beta2, o.eps1), false, stream);
  if (const auto e = absorb(a, a.moment, o.beta2, stream)) return e;
  return norms(a, as_it_is, false, stream);
}

cudaError_t came_momentum(const FactoredTensor& a, const reference::Came& rule,
                          cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  const Residual residual{static_cast<float>(o.beta1), static_cast<float>(1 - o.beta1),
                          static_cast<float>(o.eps2), elements_of(a), o.clip_threshold};
  return is_matrix(a) ? sum_up(a, residual, stream)
                      : over_elements(vector_momentum, a, stream, residual);
}

cudaError_t came_apply(const FactoredTensor& a, const reference::Came& rule, cudaStream_t stream) {
  const reference::CameOptions& o = rule.options;
  if (is_matrix(a)) {
    if (const auto e = absorb(a, a.residual, o.beta3, stream)) return e;
  }
  return over_elements(came_kernel, a, stream, static_cast<float>(o.lr),
                       static_cast<float>(o.lr * o.weight_decay));
}

}  // namespace lambcast::cuda
