#include "kernels/cuda/low_rank.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

constexpr int together = 4;  // columns of a factor per reading of the matrix
constexpr int ahead = 4;     // elements of the matrix whose products are added up first
constexpr std::size_t rows_of_part = 256;  // that a block of back_project adds up

// x' y of `ahead` elements.
__device__ float inner(const float (&x)[ahead], const float (&y)[ahead]) {
  return (x[0] * y[0] + x[1] * y[1]) + (x[2] * y[2] + x[3] * y[3]);
}

// A block takes a row of the matrix at a time.
__global__ void __launch_bounds__(threads) project_kernel(LowRank a) {
  const std::size_t columns = a.shape.columns;
  for (std::size_t i = blockIdx.x; i < a.shape.rows; i += gridDim.x) {
    for (int first = 0; first < a.rank; first += together) {
      const bool adds = first == 0 && a.x != nullptr;
      PairSum sums[together];
      for (std::size_t j = threadIdx.x; j < columns; j += ahead * threads) {
        float m[ahead] = {};
        for (int s = 0; s < ahead && j + s * threads < columns; ++s) {
          const std::size_t e = i * columns + j + s * threads;
          m[s] = adds ? a.owed[e] + a.x[e] : a.owed[e];
          if (adds) a.owed[e] = m[s];
        }
        for (int k = 0; k < together && first + k < a.rank; ++k) {
          float q[ahead] = {};
          for (int s = 0; s < ahead && j + s * threads < columns; ++s) {
            q[s] = a.q[(j + s * threads) * a.rank + first + k];
          }
          sums[k].add(inner(m, q));
        }
      }
      for (int k = 0; k < together && first + k < a.rank; ++k) {
        const double sum = block_sum(sums[k].total());
        if (threadIdx.x == 0) a.p[i * a.rank + first + k] = static_cast<float>(sum);
      }
    }
  }
}

// One block. Modified Gram-Schmidt, a column after the other.
__global__ void __launch_bounds__(finish_threads) orthonormalise_kernel(LowRank a) {
  __shared__ double shared;
  const auto dot = [&](int x, int y) {
    PairSum products;
    for (std::size_t i = threadIdx.x; i < a.shape.rows; i += blockDim.x) {
      products.add(a.p[i * a.rank + x] * a.p[i * a.rank + y]);
    }
    const double sum = block_sum(products.total());
    if (threadIdx.x == 0) shared = sum;
    __syncthreads();
    return shared;
  };
  for (int k = 0; k < a.rank; ++k) {
    const double before = dot(k, k);
    for (int other = 0; other < k; ++other) {
      const float along = static_cast<float>(dot(k, other));
      for (std::size_t i = threadIdx.x; i < a.shape.rows; i += blockDim.x) {
        a.p[i * a.rank + k] -= along * a.p[i * a.rank + other];
      }
    }
    const double squares = dot(k, k);
    const float inverse = squares > 1e-10 * before ? static_cast<float>(1 / sqrt(squares)) : 0.0f;
    for (std::size_t i = threadIdx.x; i < a.shape.rows; i += blockDim.x) {
      a.p[i * a.rank + k] *= inverse;
    }
  }
}

std::size_t parts_of(std::size_t rows) { return (rows + rows_of_part - 1) / rows_of_part; }
std::size_t column_tiles_of(std::size_t columns) { return (columns + 31) / 32; }

// A block takes 32 columns, a lane each, over the rows of a part, a warp each in turn.
__global__ void __launch_bounds__(threads)
    back_project_kernel(LowRank a, std::size_t parts, std::size_t tiles) {
  __shared__ float high[warps][32], low[warps][32];
  const std::size_t columns = a.shape.columns;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (std::size_t b = blockIdx.x; b < parts * tiles; b += gridDim.x) {
    const std::size_t part = b / tiles, j = b % tiles * 32 + lane;
    const std::size_t end = min((part + 1) * rows_of_part, a.shape.rows);
    for (int first = 0; first < a.rank; first += together) {
      PairSum sums[together];
      for (std::size_t i = part * rows_of_part + warp; i < end && j < columns; i += ahead * warps) {
        float m[ahead] = {};
        for (int s = 0; s < ahead && i + s * warps < end; ++s) {
          m[s] = a.owed[(i + s * warps) * columns + j];
        }
        for (int k = 0; k < together && first + k < a.rank; ++k) {
          float p[ahead] = {};
          for (int s = 0; s < ahead && i + s * warps < end; ++s) {
            p[s] = a.p[(i + s * warps) * a.rank + first + k];
          }
          sums[k].add(inner(m, p));
        }
      }
      for (int k = 0; k < together && first + k < a.rank; ++k) {
        __syncthreads();
        high[warp][lane] = sums[k].high;
        low[warp][lane] = sums[k].low;
        __syncthreads();
        if (warp != 0 || j >= columns) continue;
        PairSum sum;
        for (int w = 0; w < warps; ++w) sum.add({high[w][lane], low[w][lane]});
        a.workspace[(part * columns + j) * a.rank + first + k] = sum.total();
      }
    }
  }
}
__global__ void __launch_bounds__(threads) finish_back_project(LowRank a, std::size_t parts) {
  const std::size_t count = a.shape.columns * a.rank;
  for (std::size_t e = blockIdx.x * std::size_t{threads} + threadIdx.x; e < count;
       e += static_cast<std::size_t>(gridDim.x) * threads) {
    double sum = 0;
    for (std::size_t part = 0; part < parts; ++part) sum += a.workspace[part * count + e];
    a.q[e] = static_cast<float>(sum);
  }
}

__global__ void __launch_bounds__(threads) expand_kernel(LowRank a, float* sent) {
  const std::size_t columns = a.shape.columns;
  for (std::size_t i = blockIdx.x; i < a.shape.rows; i += gridDim.x) {
    for (std::size_t j = threadIdx.x; j < columns; j += threads) {
      float sum = 0;
      for (int k = 0; k < a.rank; ++k) sum += a.p[i * a.rank + k] * a.q[j * a.rank + k];
      sent[i * columns + j] = sum;
      a.owed[i * columns + j] -= sum;
    }
  }
}

}  // namespace

std::size_t low_rank_workspace(reference::MatrixShape shape, int rank) {
  return parts_of(shape.rows) * shape.columns * static_cast<std::size_t>(rank);
}

cudaError_t project(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  unsigned blocks = 0;
  if (const auto e = grid_size(project_kernel, a.shape.rows, blocks)) return e;
  launch(project_kernel, blocks, threads, stream, a);
  return cudaGetLastError();
}

cudaError_t orthonormalise(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  launch(orthonormalise_kernel, 1, finish_threads, stream, a);
  return cudaGetLastError();
}

cudaError_t back_project(const LowRank& a, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  const std::size_t parts = parts_of(a.shape.rows), tiles = column_tiles_of(a.shape.columns);
  unsigned blocks = 0;
  if (const auto e = grid_size(back_project_kernel, parts * tiles, blocks)) return e;
  launch(back_project_kernel, blocks, threads, stream, a, parts, tiles);
  const std::size_t count = a.shape.columns * static_cast<std::size_t>(a.rank);
  if (const auto e = grid_size(finish_back_project, (count + threads - 1) / threads, blocks)) {
    return e;
  }
  launch(finish_back_project, blocks, threads, stream, a, parts);
  return cudaGetLastError();
}

cudaError_t expand(const LowRank& a, float* sent, cudaStream_t stream) {
  if (a.shape.elements() == 0) return cudaSuccess;
  unsigned blocks = 0;
  if (const auto e = grid_size(expand_kernel, a.shape.rows, blocks)) return e;
  launch(expand_kernel, blocks, threads, stream, a, sent);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
