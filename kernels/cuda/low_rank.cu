#include "kernels/cuda/low_rank.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

constexpr int together = 4;  // directions per pass over the matrix
constexpr std::size_t tile = 4 * 32;  // columns that a warp takes at a time, four per lane
constexpr std::size_t staged = 1024;       // rows of a factor in shared memory
constexpr int rows_of_warp = 2;  // rows that project takes at a time
constexpr int rows_of_group = 4;  // rows that the other kernels take at a time
constexpr std::size_t expanded_rows = 32;  // rows of a warp before it takes another tile of columns

// Returns x' y; every product is rounded at most three times.
__device__ float inner(const Quad& x, const Quad& y) {
  return fmaf(x.at[1], y.at[1], x.at[0] * y.at[0]) + fmaf(x.at[3], y.at[3], x.at[2] * y.at[2]);
}

// Returns the place of a lane's element i in a tile. If all rows begin with a whole quad, the
// elements are adjacent, so that an access has 16 bytes; otherwise they are 32 apart.
template <bool quads>
__device__ std::size_t place(int i) {
  const std::size_t lane = threadIdx.x % 32;
  return quads ? 4 * lane + i : lane + 32 * i;
}
// Loads four elements of the tile that begins at column j of a row; elements beyond its end are 0.
template <bool quads>
__device__ Quad load_four(const float* row, std::size_t j, std::size_t columns) {
  Quad q{};
  const std::size_t first = j + place<quads>(0);
  if (quads && first < columns) q = load_quad(row, first, first + 4);
  for (int i = 0; !quads && i < 4; ++i)
    if (first + 32 * i < columns) q.at[i] = __ldcs(row + first + 32 * i);
  return q;
}
template <bool quads>
__device__ void store_four(float* row, std::size_t j, std::size_t columns, const Quad& q) {
  const std::size_t first = j + place<quads>(0);
  if (quads && first < columns) store_quad(row, first, first + 4, q);
  for (int i = 0; !quads && i < 4; ++i)
    if (first + 32 * i < columns) __stcs(row + first + 32 * i, q.at[i]);
}
__device__ Quad shared_quad(const float* at) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}
template <bool quads>
__device__ Quad shared_four(const float* at) {
  if (quads) return shared_quad(at + place<quads>(0));
  return {{at[place<quads>(0)], at[place<quads>(1)], at[place<quads>(2)], at[place<quads>(3)]}};
}

// Loads rows of a factor into shared memory, one line for each of `together` directions, padded
// with zeros to a whole tile.
__device__ void stage(const float* factor, std::size_t rows, int rank, int first,
                      float (&to)[together][staged]) {
  const std::size_t end = min(staged, (rows + tile - 1) / tile * tile);
  __syncthreads();
  for (std::size_t i = threadIdx.x; i < end; i += threads) {
    for (int k = 0; k < together; ++k) {
      to[k][i] = i < rows && first + k < rank ? factor[i * rank + first + k] : 0.0f;
    }
  }
  __syncthreads();
}

// Returns the sums over the warp of eight numbers of each lane: lane l gets the sum of number l /
// 4. In each round, two lanes add up one half of the remaining numbers each.
__device__ PairSum spread_sum(PairSum (&sums)[8]) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int offset = 16, half = 4; half > 0; offset /= 2, half /= 2) {
    const bool upper = lane & offset;
    for (int i = 0; i < half; ++i) {
      const PairSum mine = upper ? sums[i + half] : sums[i],
                    other = upper ? sums[i] : sums[i + half];
      sums[i] = mine;
      sums[i].add({__shfl_xor_sync(all_lanes, other.high, offset),
                   __shfl_xor_sync(all_lanes, other.low, offset)});
    }
  }
  PairSum sum = sums[0];
  for (int offset = 2; offset > 0; offset /= 2) {
    sum.add({__shfl_xor_sync(all_lanes, sum.high, offset),
             __shfl_xor_sync(all_lanes, sum.low, offset)});
  }
  return sum;
}

// Loads two rows of M; if `adds`, first completes them by adding x to the error feedback.
template <bool quads>
__device__ void load_meant(const LowRank& a, std::size_t row, std::size_t j, bool adds,
                           Quad (&m)[rows_of_warp]) {
  const std::size_t columns = a.shape.columns;
  for (int r = 0; r < rows_of_warp; ++r) {
    m[r] = {};
    if (row + r < a.shape.rows) m[r] = load_four<quads>(a.owed + (row + r) * columns, j, columns);
  }
  if (!adds) return;
  Quad x[rows_of_warp] = {};
  for (int r = 0; r < rows_of_warp; ++r)
    if (row + r < a.shape.rows) x[r] = load_four<quads>(a.x + (row + r) * columns, j, columns);
  for (int r = 0; r < rows_of_warp; ++r) {
    for (int i = 0; i < 4; ++i) m[r].at[i] += x[r].at[i];
    if (row + r < a.shape.rows) store_four<quads>(a.owed + (row + r) * columns, j, columns, m[r]);
  }
}

// A warp takes two rows of the matrix at a time; all warps of a block use the same part of Q.
template <bool quads>
__global__ void __launch_bounds__(threads) project_kernel(LowRank a) {
  alignas(16) __shared__ float factor[together][staged];
  constexpr std::size_t rows_of_block = warps * rows_of_warp;
  const std::size_t columns = a.shape.columns;
  const bool stays = columns <= staged && a.rank <= together;
  for (std::size_t b = blockIdx.x; b * rows_of_block < a.shape.rows; b += gridDim.x) {
    const std::size_t row = b * rows_of_block + threadIdx.x / 32 * rows_of_warp;
    for (int first = 0; first < a.rank; first += together) {
      const bool adds = first == 0 && a.x != nullptr;
      PairSum sums[rows_of_warp * together];
      for (std::size_t begin = 0; begin < columns; begin += staged) {
        if (!stays || b == blockIdx.x) {
          stage(a.q + begin * a.rank, columns - begin, a.rank, first, factor);
        }
        for (std::size_t j = begin; j < min(begin + staged, columns); j += tile) {
          Quad m[rows_of_warp];
          load_meant<quads>(a, row, j, adds, m);
          for (int k = 0; k < together; ++k) {
            const Quad q = shared_four<quads>(factor[k] + (j - begin));
            for (int r = 0; r < rows_of_warp; ++r) sums[r * together + k].add(inner(m[r], q));
          }
        }
      }
      const PairSum sum = spread_sum(sums);
      const int which = threadIdx.x % 32 / 4, r = which / together, k = which % together;
      if (threadIdx.x % 4 == 0 && row + r < a.shape.rows && first + k < a.rank) {
        a.p[(row + r) * a.rank + first + k] = static_cast<float>(sum.total());
      }
    }
  }
}

// Load and store entries first, first + 1, ... of a row of P, which are one quad if the rank is 4.
template <bool quads>
__device__ Quad load_entries(const float* row, int first, int rank) {
  if constexpr (quads) {
    return load_quad(row, 0, 4);
  } else {
    Quad q{};
    for (int c = 0; c < 4; ++c)
      if (first + c < rank) q.at[c] = row[first + c];
    return q;
  }
}
template <bool quads>
__device__ void store_entries(float* row, int first, int rank, const Quad& q) {
  if constexpr (quads) {
    store_quad(row, 0, 4, q);
  } else {
    for (int c = 0; c < 4; ++c)
      if (first + c < rank) row[first + c] = q.at[c];
  }
}

// Modified Gram-Schmidt by one block, with one pass for each column. A pass subtracts the previous
// column from all later ones, and sums the products of the next column with itself and the columns
// after it. The workspace holds the squares of every original column, then these products.
template <bool quads>
__global__ void __launch_bounds__(finish_threads) orthonormalise_kernel(LowRank a) {
  constexpr int ahead = quads ? 4 : 2;
  double* const before = a.workspace;
  double* const products = a.workspace + a.rank;
  for (int k = 0; k <= a.rank; ++k) {
    __syncthreads();
    float inverse = 0;
    // The remainder of a dependent column is rounding.
    if (k > 0 && products[k - 1] > 1e-10 * before[k - 1])
      inverse = static_cast<float>(1 / sqrt(products[k - 1]));
    const int begin = max(k - 1, 0) / together * together;
    for (int first = begin; first < a.rank; first += together) {
      float along[together] = {};
      for (int c = 0; k > 0 && c < together; ++c)
        if (first + c >= k && first + c < a.rank)
          along[c] = static_cast<float>(products[first + c] * inverse);
      PairSum sums[together], squares[together];
      for (std::size_t at = threadIdx.x; at < a.shape.rows; at += ahead * finish_threads) {
        Quad v[ahead];
        for (int s = 0; s < ahead; ++s) {
          const std::size_t i = at + s * finish_threads;
          v[s] = i < a.shape.rows ? load_entries<quads>(a.p + i * a.rank, first, a.rank) : Quad{};
        }
        for (int s = 0; s < ahead && at + s * finish_threads < a.shape.rows; ++s) {
          float* const row = a.p + (at + s * finish_threads) * a.rank;
          float unit = 0, own = 0;
          if (!quads && k > 0 && first > begin) unit = row[k - 1];
          if (!quads && first > k) own = row[k];
          for (int c = 0; c < together; ++c) {
            float& x = v[s].at[c];
            if (first + c == k - 1) unit = x *= inverse;
            if (first + c >= k) x -= along[c] * unit;
            if (first + c == k) own = x;
            if (first + c >= k) sums[c].add(own * x);
            if (k == 0) squares[c].add(x * x);
          }
          if (k > 0) store_entries<quads>(row, first, a.rank, v[s]);
        }
      }
      for (int c = 0; c < together && first + c < a.rank; ++c) {
        const double sum = block_sum(sums[c].total());
        if (threadIdx.x == 0 && first + c >= k) products[first + c] = sum;
        if (k > 0) continue;
        const double square = block_sum(squares[c].total());
        if (threadIdx.x == 0) before[first + c] = square;
      }
    }
  }
}

// Work of back_project's blocks: each takes a tile of columns over the rows of a part. Parts are
// long, so that the final sum over them is small. For a small matrix they are short enough for
// 2,048 blocks to have work.
struct Parts {
  std::size_t rows, count, tiles;
};
Parts parts_of(reference::MatrixShape shape) {
  const std::size_t tiles = (shape.columns + tile - 1) / tile;
  const std::size_t rows = std::clamp<std::size_t>(shape.rows * tiles / 2048, 64, staged);
  return {rows, (shape.rows + rows - 1) / rows, tiles};
}

template <bool quads>
__device__ void load_group(const LowRank& a, std::size_t i, std::size_t end, std::size_t j,
                           Quad (&m)[rows_of_group]) {
  const std::size_t columns = a.shape.columns;
  for (int s = 0; s < rows_of_group; ++s) {
    m[s] = {};
    if (i + s < end) m[s] = load_four<quads>(a.owed + (i + s) * columns, j, columns);
  }
}

// Adds the warps' sums of a tile of columns into `to`, one sum for each column from j on.
template <bool quads>
__device__ void add_warps(const PairSum (&sums)[4], std::size_t j, std::size_t columns,
                          double* to) {
  __shared__ float high[warps][tile], low[warps][tile];
  __syncthreads();
  for (int c = 0; c < 4; ++c) {
    high[threadIdx.x / 32][place<quads>(c)] = sums[c].high;
    low[threadIdx.x / 32][place<quads>(c)] = sums[c].low;
  }
  __syncthreads();
  if (threadIdx.x >= tile || j + threadIdx.x >= columns) return;
  PairSum sum;
  for (int w = 0; w < warps; ++w) sum.add({high[w][threadIdx.x], low[w][threadIdx.x]});
  to[j + threadIdx.x] = sum.total();
}

// A warp takes four rows at a time while the next four are being loaded.
template <bool quads>
__global__ void __launch_bounds__(threads) back_project_kernel(LowRank a, Parts parts) {
  alignas(16) __shared__ float factor[together][staged];
  const std::size_t warp = threadIdx.x / 32, columns = a.shape.columns;
  for (std::size_t b = blockIdx.x; b < parts.count * parts.tiles; b += gridDim.x) {
    const std::size_t part = b / parts.tiles, j = b % parts.tiles * tile;
    const std::size_t begin = part * parts.rows, end = min(begin + parts.rows, a.shape.rows);
    for (int first = 0; first < a.rank; first += together) {
      stage(a.p + begin * a.rank, end - begin, a.rank, first, factor);
      PairSum sums[together][4];
      Quad next[rows_of_group];
      load_group<quads>(a, begin + rows_of_group * warp, end, j, next);
      for (std::size_t i = begin + rows_of_group * warp; i < end; i += rows_of_group * warps) {
        Quad m[4];  // columns of four rows each
        for (int c = 0; c < 4; ++c)
          for (int s = 0; s < rows_of_group; ++s) m[c].at[s] = next[s].at[c];
        load_group<quads>(a, i + rows_of_group * warps, end, j, next);
        for (int k = 0; k < together; ++k) {
          const Quad p = shared_quad(factor[k] + (i - begin));
          for (int c = 0; c < 4; ++c) sums[k][c].add(inner(m[c], p));
        }
      }
      for (int k = 0; k < together && first + k < a.rank; ++k) {
        add_warps<quads>(sums[k], j, columns, a.workspace + (part * a.rank + first + k) * columns);
      }
    }
  }
}

// A block takes 32 entries of Q at a time, one per lane; its warps take the parts in turn.
__global__ void __launch_bounds__(threads) finish_back_project(LowRank a, std::size_t parts) {
  __shared__ double sums[warps][32];
  const std::size_t count = a.shape.columns * a.rank;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (std::size_t begin = blockIdx.x * std::size_t{32}; begin < count;
       begin += gridDim.x * std::size_t{32}) {
    const std::size_t e = begin + lane;
    double sum = 0;
#pragma unroll 8
    for (std::size_t part = warp; part < parts; part += warps)
      sum += e < count ? a.workspace[part * count + e] : 0;
    __syncthreads();
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || e >= count) continue;
    for (int w = 1; w < warps; ++w) sum += sums[w][lane];
    a.q[e % a.shape.columns * a.rank + e / a.shape.columns] = static_cast<float>(sum);
  }
}

template <bool quads>
__device__ void load_factor(const LowRank& a, std::size_t j, int first, Quad (&q)[together]) {
  for (int k = 0; k < together; ++k) {
    for (int c = 0; c < 4; ++c) {
      const std::size_t column = j + place<quads>(c);
      const bool is = column < a.shape.columns && first + k < a.rank;
      q[k].at[c] = is ? a.q[column * a.rank + first + k] : 0.0f;
    }
  }
}

// A warp has a tile of Q in registers while it takes four rows at a time.
template <bool quads>
__global__ void __launch_bounds__(threads)
    expand_kernel(LowRank a, float* sent, std::size_t tiles, std::size_t items) {
  const std::size_t columns = a.shape.columns;
  for (std::size_t b = blockIdx.x * std::size_t{warps} + threadIdx.x / 32; b < items;
       b += gridDim.x * std::size_t{warps}) {
    const std::size_t j = b % tiles * tile, begin = b / tiles * expanded_rows;
    const std::size_t end = min(begin + expanded_rows, a.shape.rows);
    Quad q[together];
    load_factor<quads>(a, j, 0, q);
    for (std::size_t i = begin; i < end; i += rows_of_group) {
      Quad m[rows_of_group], sum[rows_of_group] = {};
      load_group<quads>(a, i, end, j, m);
      for (int first = 0; first < a.rank; first += together) {
        if (a.rank > together) load_factor<quads>(a, j, first, q);
        Quad p[rows_of_group] = {};
        for (int s = 0; s < rows_of_group; ++s)
          for (int k = 0; k < together; ++k)
            if (i + s < end && first + k < a.rank) p[s].at[k] = a.p[(i + s) * a.rank + first + k];
        for (int s = 0; s < rows_of_group; ++s)
          for (int k = 0; k < together; ++k)
            for (int c = 0; c < 4; ++c) sum[s].at[c] += p[s].at[k] * q[k].at[c];
      }
      for (int s = 0; s < rows_of_group && i + s < end; ++s) {
        store_four<quads>(sent + (i + s) * columns, j, columns, sum[s]);
        for (int c = 0; c < 4; ++c) m[s].at[c] -= sum[s].at[c];
        store_four<quads>(a.owed + (i + s) * columns, j, columns, m[s]);
      }
    }
  }
}

// Whether the rows of all these matrices are whole quads.
template <typename... Matrices>
bool has_quads(const LowRank& a, Matrices... matrices) {
  return a.shape.columns % 4 == 0 && check_aligned(matrices...) == cudaSuccess;
}

}  // namespace

std::size_t low_rank_workspace(reference::MatrixShape shape, int rank) {
  const std::size_t of_column = std::max<std::size_t>(2, parts_of(shape).count * shape.columns);
  return of_column * static_cast<std::size_t>(rank);
}

cudaError_t project(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const auto kernel = has_quads(a, a.x, a.owed) ? project_kernel<true> : project_kernel<false>;
  constexpr std::size_t rows = warps * rows_of_warp;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, (a.shape.rows + rows - 1) / rows, blocks)) return e;
  launch(kernel, blocks, threads, stream, a);
  return cudaGetLastError();
}

cudaError_t orthonormalise(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const bool quads = a.rank == 4 && is_aligned(a.p);
  launch(quads ? orthonormalise_kernel<true> : orthonormalise_kernel<false>, 1, finish_threads,
         stream, a);
  return cudaGetLastError();
}

cudaError_t back_project(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const Parts parts = parts_of(a.shape);
  const auto kernel = has_quads(a, a.owed) ? back_project_kernel<true> : back_project_kernel<false>;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, parts.count * parts.tiles, blocks)) return e;
  launch(kernel, blocks, threads, stream, a, parts);
  const std::size_t count = a.shape.columns * static_cast<std::size_t>(a.rank);
  if (const auto e = grid_size(finish_back_project, (count + 31) / 32, blocks)) return e;
  launch(finish_back_project, blocks, threads, stream, a, parts.count);
  return cudaGetLastError();
}

cudaError_t expand(const LowRank& a, float* sent, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const auto kernel = has_quads(a, a.owed, sent) ? expand_kernel<true> : expand_kernel<false>;
  const std::size_t tiles = (a.shape.columns + tile - 1) / tile,
                    items = (a.shape.rows + expanded_rows - 1) / expanded_rows * tiles;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, (items + warps - 1) / warps, blocks)) return e;
  launch(kernel, blocks, threads, stream, a, sent, tiles, items);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
