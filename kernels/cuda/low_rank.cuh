// Device code of a matrix's products with a thin factor, for one matrix (low_rank.h) and for those
// of a model (galore.h). Sums in pairs of floats, `ahead` products at a time; of every element
// summed the same bits whatever the grid.
#pragma once

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

constexpr int together = 4;  // columns of a factor per reading of the matrix
constexpr int ahead = 4;     // elements of the matrix whose products are added up first

// x' y of `ahead` elements.
__device__ inline float inner(const float (&x)[ahead], const float (&y)[ahead]) {
  return (x[0] * y[0] + x[1] * y[1]) + (x[2] * y[2] + x[3] * y[3]);
}

// Row i of P = M Q by the block; element(e, first) is M's, `first` the first time that it is asked.
template <typename Element>
__device__ void project_row(std::size_t i, std::size_t columns, int rank, const float* q, float* p,
                            Element element) {
  for (int first = 0; first < rank; first += together) {
    PairSum sums[together];
    for (std::size_t j = threadIdx.x; j < columns; j += ahead * threads) {
      float m[ahead] = {};
      for (int s = 0; s < ahead && j + s * threads < columns; ++s) {
        m[s] = element(i * columns + j + s * threads, first == 0);
      }
      for (int k = 0; k < together && first + k < rank; ++k) {
        float factor[ahead] = {};
        for (int s = 0; s < ahead && j + s * threads < columns; ++s) {
          factor[s] = q[(j + s * threads) * rank + first + k];
        }
        sums[k].add(inner(m, factor));
      }
    }
    for (int k = 0; k < together && first + k < rank; ++k) {
      const double sum = block_sum(sums[k].total());
      if (threadIdx.x == 0) p[i * rank + first + k] = static_cast<float>(sum);
    }
  }
}

struct RowRange {
  std::size_t begin, end;
};

inline std::size_t column_tiles_of(std::size_t columns) { return (columns + 31) / 32; }

// M' P over some rows by the block, of the tile's 32 columns, a lane each, the rows a warp each in
// turn: calls result(j, k, sum) for column j of M and k of P.
template <typename Result>
__device__ void back_project_columns(std::size_t tile, RowRange rows, std::size_t columns, int rank,
                                     const float* matrix, const float* p, Result result) {
  __shared__ float high[warps][32], low[warps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const std::size_t j = tile * 32 + lane;
  for (int first = 0; first < rank; first += together) {
    PairSum sums[together];
    for (std::size_t i = rows.begin + warp; i < rows.end && j < columns; i += ahead * warps) {
      float m[ahead] = {};
      for (int s = 0; s < ahead && i + s * warps < rows.end; ++s) {
        m[s] = matrix[(i + s * warps) * columns + j];
      }
      for (int k = 0; k < together && first + k < rank; ++k) {
        float factor[ahead] = {};
        for (int s = 0; s < ahead && i + s * warps < rows.end; ++s) {
          factor[s] = p[(i + s * warps) * rank + first + k];
        }
        sums[k].add(inner(m, factor));
      }
    }
    for (int k = 0; k < together && first + k < rank; ++k) {
      __syncthreads();
      high[warp][lane] = sums[k].high;
      low[warp][lane] = sums[k].low;
      __syncthreads();
      if (warp != 0 || j >= columns) continue;
      PairSum sum;
      for (int w = 0; w < warps; ++w) sum.add({high[w][lane], low[w][lane]});
      result(j, first + k, sum.total());
    }
  }
}

}  // namespace lambcast::cuda
