#include <cmath>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/eight_bit.h"

namespace lambcast::cuda {
namespace {

static_assert(eight_bit_block == threads, "a thread has an element");

struct EightBitConstants {
  float b1, rest1, b2, rest2, rate, eps, clipped;
};

// Of two as near the lower one.
__device__ std::uint8_t nearest(const float* map, float x) {
  int low = 0, high = 256;  // map[low - 1] < x <= map[high]
  while (low < high) {
    const int middle = (low + high) / 2;
    if (map[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return 0;
  if (low == 256) return 255;
  return static_cast<std::uint8_t>(x - map[low - 1] <= map[low] - x ? low - 1 : low);
}

// The largest magnitude of the block, to all threads; a NaN counts as nothing, as in the reference.
__device__ float largest_of_block(float x) {
  __shared__ float shared;
  const float largest = block_max(x == x ? fabsf(x) : 0.0f);
  if (threadIdx.x == 0) shared = largest;
  __syncthreads();
  const float all = shared;
  __syncthreads();
  return all;
}

__global__ void __launch_bounds__(threads)
    adam_kernel(EightBitMoments s, const EightBitConstants c) {
  __shared__ float maps[512];
  for (int i = threadIdx.x; i < 512; i += threads) maps[i] = s.maps[i];
  __syncthreads();
  const std::size_t blocks = (s.elements + threads - 1) / threads;
  for (std::size_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const std::size_t e = b * threads + threadIdx.x;
    const bool own = e < s.elements;
    float m = 0, v = 0;
    if (own) {
      const float g = s.low[e] * c.clipped;
      m = c.b1 * (maps[s.m[e]] * s.m_largest[b]) + c.rest1 * g;
      v = c.b2 * (maps[256 + s.v[e]] * s.v_largest[b]) + c.rest2 * (g * g);
      s.low[e] = c.rate * m / (sqrtf(v) + c.eps);
    }
    const float m_largest = largest_of_block(m), v_largest = largest_of_block(v);
    if (own) {
      s.m[e] = nearest(maps, m_largest == 0 ? 0.0f : m / m_largest);
      s.v[e] = nearest(maps + 256, v_largest == 0 ? 0.0f : v / v_largest);
    }
    if (threadIdx.x == 0) {
      s.m_largest[b] = m_largest;
      s.v_largest[b] = v_largest;
    }
  }
}

}  // namespace

std::vector<float> eight_bit_maps() {
  std::vector<float> maps;
  for (const auto sign : {reference::Sign::both, reference::Sign::positive}) {
    const auto& map = reference::dynamic_map(sign);
    maps.insert(maps.end(), map.begin(), map.end());
  }
  return maps;
}

cudaError_t eight_bit_adam(const EightBitMoments& s, const reference::GaloreOptions& o,
                           double clipped, int step, cudaStream_t stream) {
  if (s.elements == 0) return cudaSuccess;
  const double root = std::sqrt(1 - std::pow(o.beta2, step));
  const EightBitConstants c{static_cast<float>(o.beta1),
                            static_cast<float>(1 - o.beta1),
                            static_cast<float>(o.beta2),
                            static_cast<float>(1 - o.beta2),
                            static_cast<float>(root / (1 - std::pow(o.beta1, step))),
                            static_cast<float>(o.eps * root),
                            static_cast<float>(clipped)};
  unsigned blocks = 0;
  const std::size_t items = (s.elements + threads - 1) / threads;
  if (const auto e = grid_size(adam_kernel, items, blocks)) return e;
  launch(adam_kernel, blocks, threads, stream, s, c);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
