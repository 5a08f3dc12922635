#include <cmath>

#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

static_assert(eight_bit_block == threads, "a thread has an element");

// So many that the table of pieces is thin beside them.
constexpr std::size_t blocks_of_piece = 8;

std::size_t pieces_of_moments(const EightBitMoments& s) {
  constexpr std::size_t elements = blocks_of_piece * eight_bit_block;
  return (s.elements + elements - 1) / elements;
}

struct EightBitConstants {
  float b1, rest1, b2, rest2, rate, eps;
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

struct Moments {
  float m = 0, v = 0;
};

__device__ Moments stored(const EightBitMoments& s, const float* maps, std::size_t b,
                          std::size_t e) {
  if (s.m8 == nullptr) return {s.m[e], s.v[e]};
  return {maps[s.m8[e]] * s.m_largest[b], maps[256 + s.v8[e]] * s.v_largest[b]};
}

// All threads of the block.
__device__ void store(const EightBitMoments& s, const float* maps, std::size_t b, std::size_t e,
                      const Moments& x) {
  const bool own = e < s.elements;
  if (s.m8 == nullptr) {
    if (!own) return;
    s.m[e] = x.m;
    s.v[e] = x.v;
    return;
  }
  const float m_largest = largest_of_block(x.m), v_largest = largest_of_block(x.v);
  if (own) {
    s.m8[e] = nearest(maps, m_largest == 0 ? 0.0f : x.m / m_largest);
    s.v8[e] = nearest(maps + 256, v_largest == 0 ? 0.0f : x.v / v_largest);
  }
  if (threadIdx.x == 0) {
    s.m_largest[b] = m_largest;
    s.v_largest[b] = v_largest;
  }
}

__global__ void __launch_bounds__(threads)
    small_adam_kernel(const EightBitBatch batch, const float* clipped, const EightBitConstants c) {
  __shared__ float maps[512];
  for (int i = threadIdx.x; i < 512; i += threads) maps[i] = batch.maps[i];
  __syncthreads();
  for (int k = blockIdx.x; k < batch.pieces.count; k += gridDim.x) {
    const TensorPiece piece = batch.pieces.at[k];
    const EightBitMoments s = batch.tensors[piece.tensor];
    const float factor = clipped == nullptr ? 1.0f : clipped[piece.tensor];
    const std::size_t first = piece.index * blocks_of_piece;
    const std::size_t end = min(first + blocks_of_piece, (s.elements + threads - 1) / threads);
    for (std::size_t b = first; b < end; ++b) {
      const std::size_t e = b * threads + threadIdx.x;
      Moments x;
      if (e < s.elements) {
        const float g = s.low[e] * factor;
        x = stored(s, maps, b, e);
        x.m = c.b1 * x.m + c.rest1 * g;
        x.v = c.b2 * x.v + c.rest2 * (g * g);
        s.low[e] = c.rate * x.m / (sqrtf(x.v) + c.eps);
      }
      store(s, maps, b, e, x);
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

EightBitTensors::EightBitTensors(std::span<const EightBitMoments> tensors)
    : tensors_(tensors),
      maps_(std::span<const float>(eight_bit_maps())),
      pieces_(pieces_of(tensors, pieces_of_moments)) {}

EightBitBatch EightBitTensors::batch() const {
  return {.tensors = tensors_.data(), .maps = maps_.data(), .pieces = list_of(pieces_)};
}

cudaError_t eight_bit_adam(const EightBitBatch& batch, const reference::GaloreOptions& o,
                           const float* clipped, int step, cudaStream_t stream) {
  const double root = std::sqrt(1 - std::pow(o.beta2, step));
  const EightBitConstants c{static_cast<float>(o.beta1),
                            static_cast<float>(1 - o.beta1),
                            static_cast<float>(o.beta2),
                            static_cast<float>(1 - o.beta2),
                            static_cast<float>(root / (1 - std::pow(o.beta1, step))),
                            static_cast<float>(o.eps * root)};
  return launch_over(batch.pieces, small_adam_kernel, stream, batch, clipped, c);
}

}  // namespace lambcast::cuda
