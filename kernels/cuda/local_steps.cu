#include "kernels/cuda/local_steps.h"

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

struct Sources {
  const float* buffers[most_neighbours];
  float weights[most_neighbours];
  int count;
};

__global__ void __launch_bounds__(threads)
    weighted_sum_kernel(const Sources s, float* x, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad sum{};
    for (int k = 0; k < s.count; ++k) {
      const Quad q = load_quad(s.buffers[k], e, limit);
      for (int i = 0; i < 4; ++i) sum.at[i] += s.weights[k] * q.at[i];
    }
    store_quad(x, e, limit, sum);
  });
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
  Sources s{};
  s.count = static_cast<int>(buffers.size());
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    if (const auto e = check_aligned(buffers[k])) return e;
    s.buffers[k] = buffers[k];
    s.weights[k] = weights[k];
  }
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(weighted_sum_kernel, quads_of(elements), blocks)) return e;
  launch(weighted_sum_kernel, blocks, threads, stream, s, x, elements);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
