#include "kernels/cuda/low_rank.h"

#include "kernels/cuda/low_rank.cuh"

namespace lambcast::cuda {
namespace {

constexpr std::size_t rows_of_part = 256;  // that a block of back_project adds up

// A block takes a row of the matrix at a time.
__global__ void __launch_bounds__(threads) project_kernel(LowRank a) {
  for (std::size_t i = blockIdx.x; i < a.shape.rows; i += gridDim.x) {
    project_row(i, a.shape.columns, a.rank, a.q, a.p, [&a](std::size_t e, bool first) {
      const bool adds = first && a.x != nullptr;
      const float m = adds ? a.owed[e] + a.x[e] : a.owed[e];
      if (adds) a.owed[e] = m;
      return m;
    });
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

// A block takes a tile of columns over the rows of a part at a time.
__global__ void __launch_bounds__(threads)
    back_project_kernel(LowRank a, std::size_t parts, std::size_t tiles) {
  for (std::size_t b = blockIdx.x; b < parts * tiles; b += gridDim.x) {
    const std::size_t part = b / tiles, first = part * rows_of_part;
    back_project_columns(b % tiles, {first, min(first + rows_of_part, a.shape.rows)},
                         a.shape.columns, a.rank, a.owed, a.p,
                         [&](std::size_t j, int k, double sum) {
                           a.workspace[(part * a.shape.columns + j) * a.rank + k] = sum;
                         });
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
