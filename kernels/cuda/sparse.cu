#include "kernels/cuda/sparse.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

__global__ void __launch_bounds__(threads)
    add_owed_kernel(const float* x, float* owed, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    const Quad add = load_quad(x, e, limit);
    Quad c = load_quad(owed, e, limit);
    for (int i = 0; i < 4; ++i) c.at[i] += add.at[i];
    store_quad(owed, e, limit, c);
  });
}

__global__ void __launch_bounds__(threads)
    random_kernel(float* c, std::size_t elements, std::uint64_t seed, SparseMessage message) {
  const std::size_t k = message.kept;
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < k;
       i += static_cast<std::size_t>(gridDim.x) * threads) {
    const std::size_t begin = i * elements / k, end = (i + 1) * elements / k;
    const std::size_t e = begin + mixed(mixed(seed) ^ i) % (end - begin);
    message.indices[i] = static_cast<std::uint32_t>(e);
    message.values[i] = c[e];
    c[e] = 0;
  }
}

__global__ void __launch_bounds__(threads)
    add_at_kernel(float* x, SparseMessage message, float share) {
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < message.kept;
       i += static_cast<std::size_t>(gridDim.x) * threads) {
    x[message.indices[i]] += share * message.values[i];
  }
}

std::size_t blocks_of(std::size_t items) { return (items + threads - 1) / threads; }

}  // namespace

cudaError_t add_owed(const float* x, float* owed, std::size_t elements, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  if (const auto e = check_aligned(x, owed)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(add_owed_kernel, quads_of(elements), blocks)) return e;
  launch(add_owed_kernel, blocks, threads, stream, x, owed, elements);
  return cudaGetLastError();
}

cudaError_t random_k(float* c, std::size_t elements, std::uint64_t seed,
                     const SparseMessage& message, cudaStream_t stream) {
  if (message.kept < 1 || message.kept > elements) return cudaErrorInvalidValue;
  unsigned blocks = 0;
  if (const auto e = grid_size(random_kernel, blocks_of(message.kept), blocks)) return e;
  launch(random_kernel, blocks, threads, stream, c, elements, seed, message);
  return cudaGetLastError();
}

cudaError_t add_at(float* x, const SparseMessage& message, float share, cudaStream_t stream) {
  if (message.kept == 0) return cudaSuccess;
  unsigned blocks = 0;
  if (const auto e = grid_size(add_at_kernel, blocks_of(message.kept), blocks)) return e;
  launch(add_at_kernel, blocks, threads, stream, x, message, share);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
