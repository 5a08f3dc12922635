#include "kernels/cuda/device.cuh"
#include "kernels/profile/load.h"

namespace lambcast::cuda {
namespace {

__global__ void fill_kernel(float* x, std::size_t elements, float shift) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads;
  for (std::size_t e = blockIdx.x * std::size_t{threads} + threadIdx.x; e < elements; e += stride) {
    std::uint64_t z = (e + 1) * 0x9e3779b97f4a7c15ull;  // splitmix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    x[e] = static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f - 0.5f + shift;
  }
}

__global__ void empty_kernel() {}

}  // namespace

cudaError_t fill_random(float* x, std::size_t elements, float shift, cudaStream_t stream) {
  unsigned blocks = 0;
  if (const auto e = grid_size(fill_kernel, quads_of(elements), blocks)) return e;
  launch(fill_kernel, blocks, threads, stream, x, elements, shift);
  return cudaGetLastError();
}

cudaError_t empty(cudaStream_t stream) {
  launch(empty_kernel, 1, 1, stream);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
