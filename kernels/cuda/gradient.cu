#include "kernels/cuda/gradient.h"

#include "kernels/cuda/gradient.cuh"

namespace lambcast::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(threads)
    square_kernel(const T* g, std::size_t elements, double* slots) {
  RunningSum sum;
  const auto load = [&](std::size_t e, std::size_t limit) { return load_quad(g, e, limit); };
  for_each_loaded_quad(elements, load,
                       [&](std::size_t, std::size_t, const Quad& q) { add_squares(sum, q); });
  const double total = block_sum(sum.total());
  if (threadIdx.x == 0) slots[blockIdx.x] = total;
}

__global__ void __launch_bounds__(finish_threads)
    finish_norm(const double* slots, unsigned count, double* squared_norm) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += slots[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *squared_norm = sum;
}

__device__ float clip_factor(double squared_norm, double loss_scale, double limit) {
  double combined = loss_scale;
  if (limit > 0) {
    const double clip = (sqrt(squared_norm) / loss_scale + 1e-6) / limit;
    if (clip > 1) combined = clip * loss_scale;
  }
  return static_cast<float>(1.0 / combined);
}

__global__ void clip_factor_kernel(const double* squared_norm, double loss_scale, double limit,
                                   float* factor) {
  if (threadIdx.x == 0) *factor = clip_factor(*squared_norm, loss_scale, limit);
}

// Unscales a gradient; `from` and `to` may be the same memory.
template <typename T>
__global__ void __launch_bounds__(threads)
    unscale_kernel(TypedGradient<T> from, float* to, std::size_t elements) {
  const GradientReader<T> reader(from);
  const auto load = [&](std::size_t e, std::size_t limit) { return reader.load(e, limit); };
  for_each_loaded_quad(elements, load, [&](std::size_t e, std::size_t limit, const Quad& q) {
    store_quad(to, e, limit, reader.scaled(q));
  });
}

}  // namespace

cudaError_t measure_gradient(const Gradient& g, std::size_t elements, double* squared_norm,
                             double* workspace, cudaStream_t stream) {
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(typed)) return e;
    unsigned blocks = 0;
    if (const auto e = grid_size(square_kernel<T>, quads_of(elements), blocks)) return e;
    launch(square_kernel<T>, blocks, threads, stream, typed.values, elements, workspace);
    launch(finish_norm, 1, finish_threads, stream, workspace, blocks, squared_norm);
    return cudaGetLastError();
  });
}

cudaError_t gradient_factor(const double* squared_norm, double loss_scale, double limit,
                            float* factor, cudaStream_t stream) {
  launch(clip_factor_kernel, 1, 32, stream, squared_norm, loss_scale, limit, factor);
  return cudaGetLastError();
}

cudaError_t unscale(const Gradient& g, float* to, std::size_t elements, cudaStream_t stream) {
  return with_type(g, [&]<typename T>(const TypedGradient<T>& typed) {
    if (const auto e = check_aligned(typed, to)) return e;
    unsigned blocks = 0;
    if (const auto e = grid_size(unscale_kernel<T>, quads_of(elements), blocks)) return e;
    launch(unscale_kernel<T>, blocks, threads, stream, typed, to, elements);
    return cudaGetLastError();
  });
}

}  // namespace lambcast::cuda
