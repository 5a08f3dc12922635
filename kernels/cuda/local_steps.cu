#include "kernels/cuda/local_steps.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

struct Outer {
  float lr, momentum;
  bool nesterov;
};

__global__ void __launch_bounds__(threads) outer_kernel(OuterState s, const Outer o) {
  for_each_quad(s.elements, [&](std::size_t e, std::size_t limit) {
    Quad anchor = load_quad(s.anchor, e, limit), velocity{};
    const Quad mean = load_quad(s.mean, e, limit);
    if (s.velocity) velocity = load_quad(s.velocity, e, limit);
    for (int i = 0; i < 4; ++i) {
      float step = anchor.at[i] - mean.at[i];
      if (s.velocity) {
        velocity.at[i] = o.momentum * velocity.at[i] + step;
        step = o.nesterov ? step + o.momentum * velocity.at[i] : velocity.at[i];
      }
      anchor.at[i] -= o.lr * step;
    }
    if (s.velocity) store_quad(s.velocity, e, limit, velocity);
    store_quad(s.anchor, e, limit, anchor);
    store_quad(s.p, e, limit, anchor);
  });
}

// The number of buffers is a compile-time constant, so that a thread has a quad of each in flight
// before it adds the first.
template <int count>
struct Sources {
  const float* buffers[count];
  float weights[count];
};

template <int count>
__global__ void __launch_bounds__(threads)
    weighted_sum_kernel(const Sources<count> s, float* x, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad q[count], sum{};
#pragma unroll
    for (int k = 0; k < count; ++k) q[k] = load_quad(s.buffers[k], e, limit);
#pragma unroll
    for (int k = 0; k < count; ++k)
      for (int i = 0; i < 4; ++i) sum.at[i] += s.weights[k] * q[k].at[i];
    store_quad(x, e, limit, sum);
  });
}

template <int count>
cudaError_t sum_of(std::span<const float* const> buffers, std::span<const float> weights, float* x,
                   std::size_t elements, cudaStream_t stream) {
  if constexpr (count == 0) {
    return cudaMemsetAsync(x, 0, elements * sizeof *x, stream);
  } else {
    if (buffers.size() < count) return sum_of<count - 1>(buffers, weights, x, elements, stream);
    Sources<count> s{};
    std::ranges::copy(buffers, s.buffers);
    std::ranges::copy(weights, s.weights);
    unsigned blocks = 0;
    const auto kernel = weighted_sum_kernel<count>;
    if (const auto e = grid_size(kernel, quads_of(elements), blocks)) return e;
    launch(kernel, blocks, threads, stream, s, x, elements);
    return cudaGetLastError();
  }
}

}  // namespace

cudaError_t outer_step(const OuterState& s, const reference::OuterOptions& o, cudaStream_t stream) {
  if (s.elements == 0) return cudaSuccess;
  if (const auto e = check_aligned(s.anchor, s.velocity, s.mean, s.p)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(outer_kernel, quads_of(s.elements), blocks)) return e;
  launch(outer_kernel, blocks, threads, stream, s,
         Outer{static_cast<float>(o.lr), static_cast<float>(o.momentum), o.nesterov});
  return cudaGetLastError();
}

cudaError_t weighted_sum(std::span<const float* const> buffers, std::span<const float> weights,
                         float* x, std::size_t elements, cudaStream_t stream) {
  if (buffers.size() != weights.size() || buffers.size() > most_neighbours) {
    return cudaErrorInvalidValue;
  }
  if (elements == 0) return cudaSuccess;
  for (const float* buffer : buffers)
    if (const auto e = check_aligned(buffer)) return e;
  if (const auto e = check_aligned(x)) return e;
  return sum_of<most_neighbours>(buffers, weights, x, elements, stream);
}

}  // namespace lambcast::cuda
