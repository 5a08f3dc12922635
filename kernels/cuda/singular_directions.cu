#include "kernels/cuda/singular_directions.h"

#include <string>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/solver_library.h"
#include "sim/base/error.h"

namespace lambcast::cuda {
namespace {

constexpr int product_tile = 32;
constexpr int tile_rows = product_tile / warps;  // rows of a thread

// The gradient as a side x inner matrix, for either order of its dimensions.
struct Sides {
  const float* g;
  std::size_t side, inner, by_side, by_inner;  // distances in memory of adjacent elements
  __device__ float at(std::size_t i, std::size_t k) const {
    return i < side && k < inner ? g[i * by_side + k * by_inner] : 0.0f;
  }
};
Sides sides_of(const float* gradient, reference::MatrixShape shape) {
  if (shape.rows >= shape.columns) return {gradient, shape.columns, shape.rows, 1, shape.columns};
  return {gradient, shape.rows, shape.columns, shape.columns, 1};
}

// Loads the tile that a block multiplies, of side by inner dimension, in the order of memory.
__device__ void load_tile(const Sides& x, std::size_t first, std::size_t k,
                          float (&to)[product_tile][product_tile + 1]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int r = warp; r < product_tile; r += warps) {
    if (x.by_side == 1)
      to[r][lane] = x.at(first + lane, k + r);
    else
      to[lane][r] = x.at(first + r, k + lane);
  }
}

// Computes the lower triangle of gram[i][j] = sum_k x(i, k) x(j, k), column by column.
__global__ void __launch_bounds__(threads) gram_kernel(Sides x, std::size_t tiles, float* gram) {
  __shared__ float a[product_tile][product_tile + 1], b[product_tile][product_tile + 1];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (std::size_t pair = blockIdx.x; pair < tiles * tiles; pair += gridDim.x) {
    const std::size_t i0 = pair / tiles * product_tile, j0 = pair % tiles * product_tile;
    if (i0 < j0) continue;
    PairSum sums[tile_rows];
    for (std::size_t k = 0; k < x.inner; k += product_tile) {
      __syncthreads();
      load_tile(x, i0, k, a);
      load_tile(x, j0, k, b);
      __syncthreads();
      for (int r = 0; r < tile_rows; ++r) {
        float sum = 0;
        for (int s = 0; s < product_tile; ++s) sum += a[s][lane] * b[s][warp + r * warps];
        sums[r].add(sum);
      }
    }
    for (int r = 0; r < tile_rows; ++r) {
      const std::size_t i = i0 + lane, j = j0 + warp + r * warps;
      if (i < x.side && j < x.side) gram[j * x.side + i] = static_cast<float>(sums[r].total());
    }
  }
}

// Runs as one block. The diagonal is finite exactly if all entries are; otherwise the solver gets
// zeros.
__global__ void __launch_bounds__(finish_threads)
    check_kernel(float* gram, std::size_t side, int* unusable) {
  __shared__ double trace;
  double sum = 0;
  for (std::size_t i = threadIdx.x; i < side; i += blockDim.x) sum += gram[i * (side + 1)];
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    trace = sum;
    *unusable = !isfinite(sum);
  }
  __syncthreads();
  if (isfinite(trace)) return;
  for (std::size_t e = threadIdx.x; e < side * side; e += blockDim.x) gram[e] = 0;
}

// One block per direction. Eigenvalues increase, so the leading direction is the last one.
__global__ void __launch_bounds__(threads)
    basis_kernel(const float* vectors, std::size_t side, int rank, const int* unusable,
                 const int* info, float* basis) {
  __shared__ float sizes[threads];
  __shared__ std::size_t places[threads];
  __shared__ float sign;
  if (*unusable != 0 || *info != 0) return;
  for (int d = blockIdx.x; d < rank; d += gridDim.x) {
    const float* const v = vectors + static_cast<std::size_t>(rank - 1 - d) * side;
    float size = -1;
    std::size_t place = 0;
    for (std::size_t i = threadIdx.x; i < side; i += threads) {
      if (fabsf(v[i]) <= size) continue;
      size = fabsf(v[i]);
      place = i;
    }
    __syncthreads();
    sizes[threadIdx.x] = size;
    places[threadIdx.x] = place;
    __syncthreads();
    if (threadIdx.x == 0) {
      int best = 0;
      for (int t = 1; t < threads; ++t) {
        const bool first = sizes[t] == sizes[best] && places[t] < places[best];
        if (sizes[t] > sizes[best] || first) best = t;
      }
      sign = v[places[best]] < 0 ? -1.0f : 1.0f;
    }
    __syncthreads();
    for (std::size_t i = threadIdx.x; i < side; i += threads) basis[i * rank + d] = sign * v[i];
  }
}

void require_solver(cusolverStatus_t status, const char* what) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw Error(Exit::failure,
              std::string(what) + ": error " + std::to_string(int(status)) + " of cuSOLVER");
}

constexpr auto wanted = CUSOLVER_EIG_MODE_VECTOR;
constexpr auto some = CUSOLVER_EIG_RANGE_I;
constexpr auto lower = CUBLAS_FILL_MODE_LOWER;

}  // namespace

SingularDirections::SingularDirections(std::size_t side, int rank)
    : side_(side), rank_(rank), gram_(side * side), values_(side), unusable_(1), info_(1) {
  if (rank < 1 || static_cast<std::size_t>(rank) > side) {
    throw Error(Exit::usage,
                "rank: " + std::to_string(rank) + " (allowed: 1 to " + std::to_string(side) + ")");
  }
  const SolverApi& api = load_solver();
  cusolverDnHandle_t handle = nullptr;
  require_solver(api.cusolverDnCreate(&handle), "cusolverDnCreate");
  handle_ = handle;
  const int n = static_cast<int>(side);
  int found = 0, floats = 0;
  require_solver(
      api.cusolverDnSsyevdx_bufferSize(handle, wanted, some, lower, n, gram_.data(), n, 0, 0,
                                       n - rank + 1, n, &found, values_.data(), &floats),
      "cusolverDnSsyevdx_bufferSize");
  workspace_ = DeviceBuffer<float>(static_cast<std::size_t>(floats));
}

SingularDirections::~SingularDirections() {
  if (handle_ != nullptr) {
    load_solver().cusolverDnDestroy(static_cast<cusolverDnHandle_t>(handle_));
  }
}

void SingularDirections::find(const float* gradient, reference::MatrixShape shape, float* basis,
                              cudaStream_t stream) {
  const Sides x = sides_of(gradient, shape);
  if (x.side != side_) {
    throw Error(Exit::usage, "a matrix whose smaller side is " + std::to_string(x.side) +
                                 " (allowed: " + std::to_string(side_) + ")");
  }
  const std::size_t tiles = (side_ + product_tile - 1) / product_tile;
  unsigned blocks = 0;
  cuda::require(grid_size(gram_kernel, tiles * tiles, blocks), "products of the gradient");
  launch(gram_kernel, blocks, threads, stream, x, tiles, gram_.data());
  launch(check_kernel, 1, finish_threads, stream, gram_.data(), side_, unusable_.data());
  cuda::require(cudaGetLastError(), "products of the gradient");

  const SolverApi& api = load_solver();
  const auto handle = static_cast<cusolverDnHandle_t>(handle_);
  const int n = static_cast<int>(side_);
  int found = 0;
  require_solver(api.cusolverDnSetStream(handle, stream), "cusolverDnSetStream");
  require_solver(api.cusolverDnSsyevdx(handle, wanted, some, lower, n, gram_.data(), n, 0, 0,
                                       n - rank_ + 1, n, &found, values_.data(), workspace_.data(),
                                       static_cast<int>(workspace_.size()), info_.data()),
                 "cusolverDnSsyevdx");
  launch(basis_kernel, static_cast<unsigned>(rank_), threads, stream, gram_.data(), side_, rank_,
         unusable_.data(), info_.data(), basis);
  cuda::require(cudaGetLastError(), "basis of the gradient");
}

}  // namespace lambcast::cuda
