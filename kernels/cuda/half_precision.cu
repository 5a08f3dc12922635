#include "kernels/cuda/half_precision.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

__global__ void __launch_bounds__(threads)
    round_kernel(HalfPointer to, const float* from, std::size_t elements) {
  const auto load = [&](std::size_t e, std::size_t limit) { return load_quad(from, e, limit); };
  for_each_loaded_quad(elements, load, [&](std::size_t e, std::size_t limit, const Quad& q) {
    store_quad(to, e, limit, q);
  });
}

}  // namespace

cudaError_t round_to(HalfPointer to, const float* from, std::size_t elements, cudaStream_t stream) {
  if (const auto e = check_aligned(to, from)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(round_kernel, quads_of(elements), blocks)) return e;
  launch(round_kernel, blocks, threads, stream, to, from, elements);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
