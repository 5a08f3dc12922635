#include <algorithm>
#include <cmath>

#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/eight_bit_code.cuh"
#include "kernels/cuda/middling.cuh"
#include "kernels/cuda/tensor_pieces.cuh"
#include "kernels/cuda/wire_code.cuh"

namespace lambcast::cuda {
namespace {

using reference::Sign;

static_assert(eight_bit_block == 8 * 32, "a warp has a block, a lane two quads of it");

// Blocks of 256 elements in a piece of work: enough that the table of pieces stays small.
constexpr std::size_t blocks_of_piece = 4 * warps;

std::size_t pieces_of_moments(const EightBitMoments& s) {
  constexpr std::size_t elements = blocks_of_piece * eight_bit_block;
  return (s.elements + elements - 1) / elements;
}

constexpr int entries_of_both = nearest_bins<Sign::both>.entries,
              entries_of_positive = nearest_bins<Sign::positive>.entries;

struct EightBitConstants {
  float b1, rest1, b2, rest2, rate, eps;
};

// Calls f(h, i) for element i of quad h.
template <typename F>
__device__ void for_each_element(F f) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) f(h, i);
  }
}

// Returns the largest magnitude of the warp in all lanes. NaNs are ignored, as in the reference.
__device__ float largest_of_warp(const Quad (&x)[2]) {
  float largest = 0;
  for_each_element([&](int h, int i) { largest = fmaxf(largest, fabsf(x[h].at[i])); });
#if __CUDA_ARCH__ >= 800
  return from_bits(__reduce_max_sync(all_lanes, to_bits(largest)));
#else
  for (int offset = 16; offset > 0; offset /= 2)
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, offset));
  return largest;
#endif
}

// Accesses to the four elements from e on: one access if `whole`, else one by one below n.
template <bool whole>
struct Elements {
  std::size_t n;

  __device__ Quad load(const float* x, std::size_t e) const {
    if constexpr (whole) return load_quad(x, e, e + 4);
    Quad q{};
    for (int i = 0; i < 4; ++i) q.at[i] = e + i < n ? x[e + i] : 0.0f;
    return q;
  }
  __device__ void store(float* x, std::size_t e, const Quad& q) const {
    if constexpr (whole) {
      store_quad(x, e, e + 4, q);
    } else {
      for (int i = 0; i < 4; ++i)
        if (e + i < n) x[e + i] = q.at[i];
    }
  }
  // Returns four codes, the first in the lowest bits.
  __device__ std::uint32_t load(const std::uint8_t* x, std::size_t e) const {
    if constexpr (whole) return __ldcs(reinterpret_cast<const std::uint32_t*>(x + e));
    std::uint32_t codes = 0;
    for (int i = 0; i < 4; ++i)
      if (e + i < n) codes |= std::uint32_t{x[e + i]} << (8 * i);
    return codes;
  }
  __device__ void store(std::uint8_t* x, std::size_t e, std::uint32_t codes) const {
    if constexpr (whole) {
      __stcs(reinterpret_cast<std::uint32_t*>(x + e), codes);
    } else {
      for (int i = 0; i < 4; ++i)
        if (e + i < n) x[e + i] = static_cast<std::uint8_t>(codes >> (8 * i));
    }
  }
};

// Divides x by `most`; the result is 0 if `most` is 0.
__device__ void divide(Quad (&x)[2], float most) {
  const Scale scale(most);
  if (scale.divides)
    for_each_element([&](int h, int i) { x[h].at[i] = scale.quotient(x[h].at[i]); });
  else
    for_each_element([&](int h, int i) { x[h].at[i] = most == 0 ? 0.0f : x[h].at[i] / most; });
}

// One of the two moments of a block, in 8 bits.
template <Sign sign>
struct CodedMoment {
  std::uint8_t* codes;
  float* largest;
  const float* map;
  const std::uint32_t* table;

  // Input of `decoded`. The lane that will write the largest value also reads it, so that no other
  // lane reads it later.
  struct Loaded {
    std::uint32_t codes[2];
    float largest;
  };
  template <bool whole>
  __device__ Loaded load(const Elements<whole>& access, std::size_t b, std::size_t e) const {
    return {{access.load(codes, e), access.load(codes, e + 128)},
            threadIdx.x % 32 == 0 ? largest[b] : 0.0f};
  }
  __device__ static void share(Loaded& loaded) {
    loaded.largest = __shfl_sync(all_lanes, loaded.largest, 0);
  }
  __device__ float decoded(const Loaded& loaded, int h, int i) const {
    return map[(loaded.codes[h] >> (8 * i)) & 255] * loaded.largest;
  }
  // All lanes of the warp must call it.
  template <bool whole>
  __device__ void store(const Elements<whole>& access, std::size_t b, std::size_t e,
                        Quad (&moved)[2]) const {
    const float most = largest_of_warp(moved);
    divide(moved, most);
    std::uint32_t coded[2] = {};
    for_each_element(
        [&](int h, int i) { coded[h] |= nearest_code<sign>(table, moved[h].at[i]) << (8 * i); });
    for (int h = 0; h < 2; ++h) access.store(codes, e + 128 * h, coded[h]);
    if (threadIdx.x % 32 == 0) largest[b] = most;
  }
};
// One of the two moments of a block, in 32 bits.
struct FloatMoment {
  float* x;

  struct Loaded {
    Quad x[2];
  };
  template <bool whole>
  __device__ Loaded load(const Elements<whole>& access, std::size_t, std::size_t e) const {
    return {{access.load(x, e), access.load(x, e + 128)}};
  }
  __device__ static void share(Loaded&) {}
  __device__ static float decoded(const Loaded& loaded, int h, int i) { return loaded.x[h].at[i]; }
  template <bool whole>
  __device__ void store(const Elements<whole>& access, std::size_t, std::size_t e,
                        const Quad (&moved)[2]) const {
    for (int h = 0; h < 2; ++h) access.store(x, e + 128 * h, moved[h]);
  }
};

// Makes a step on block b with one warp.
template <bool whole, typename First, typename Second>
__device__ void step_block(const EightBitMoments& s, const First& of_m, const Second& of_v,
                           std::size_t b, float factor, const EightBitConstants& c) {
  const Elements<whole> access{s.elements};
  const std::size_t e = b * eight_bit_block + 4 * (threadIdx.x % 32);
  Quad low[2] = {access.load(s.low, e), access.load(s.low, e + 128)}, m[2], v[2];
  auto m_before = of_m.load(access, b, e);
  auto v_before = of_v.load(access, b, e);
  of_m.share(m_before);
  of_v.share(v_before);
  MiddlingOperands operands;
  for_each_element([&](int h, int i) {
    const float g = low[h].at[i] * factor;
    m[h].at[i] = c.b1 * of_m.decoded(m_before, h, i) + c.rest1 * g;
    v[h].at[i] = c.b2 * of_v.decoded(v_before, h, i) + c.rest2 * (g * g);
    low[h].at[i] = c.rate * m[h].at[i];
    operands.add(low[h].at[i], v[h].at[i]);
  });
  if (operands.all(c.eps))
    for_each_element([&](int h, int i) {
      low[h].at[i] = middling_quotient(low[h].at[i], middling_root(v[h].at[i]) + c.eps);
    });
  else
    for_each_element(
        [&](int h, int i) { low[h].at[i] = low[h].at[i] / (sqrtf(v[h].at[i]) + c.eps); });
  for (int h = 0; h < 2; ++h) access.store(s.low, e + 128 * h, low[h]);
  if constexpr (!whole)
    for_each_element([&](int h, int i) {
      if (e + 128 * h + i >= s.elements) m[h].at[i] = v[h].at[i] = 0;
    });
  of_m.store(access, b, e, m);
  of_v.store(access, b, e, v);
}

__device__ bool is_aligned_to(const void* x, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(x) % bytes == 0;
}

__global__ void __launch_bounds__(threads, 4)  // faster, although a few registers spill
    small_adam_kernel(const EightBitBatch batch, const float* clipped, const EightBitConstants c) {
  __shared__ float maps[512];
  __shared__ std::uint32_t nearest[entries_of_both + entries_of_positive];
  for (int i = threadIdx.x; i < 512; i += threads) maps[i] = batch.maps[i];
  for (int i = threadIdx.x; i < entries_of_both + entries_of_positive; i += threads)
    nearest[i] = batch.nearest[i];
  __syncthreads();
  for (int k = blockIdx.x; k < batch.pieces.count; k += gridDim.x) {
    const TensorPiece piece = batch.pieces.at[k];
    const EightBitMoments s = batch.tensors[piece.tensor];
    const float factor = clipped == nullptr ? 1.0f : clipped[piece.tensor];
    const CodedMoment<Sign::both> m8{s.m8, s.m_largest, maps, nearest};
    const CodedMoment<Sign::positive> v8{s.v8, s.v_largest, maps + 256, nearest + entries_of_both};
    const bool aligned =
        is_aligned_to(s.low, 16) && is_aligned_to(s.m8, 4) && is_aligned_to(s.v8, 4);
    const std::size_t first = piece.index * blocks_of_piece;
    const std::size_t end =
        min(first + blocks_of_piece, (s.elements + eight_bit_block - 1) / eight_bit_block);
    for (std::size_t b = first + threadIdx.x / 32; b < end; b += warps) {
      if (s.m8 == nullptr)  // a tensor with moments in 32 bits
        step_block<false>(s, FloatMoment{s.m}, FloatMoment{s.v}, b, factor, c);
      else if (aligned && (b + 1) * eight_bit_block <= s.elements)
        step_block<true>(s, m8, v8, b, factor, c);
      else
        step_block<false>(s, m8, v8, b, factor, c);
    }
  }
}

}  // namespace

std::vector<float> eight_bit_maps() {
  std::vector<float> maps;
  for (const Sign sign : {Sign::both, Sign::positive}) {
    const auto& map = reference::dynamic_map(sign);
    maps.insert(maps.end(), map.begin(), map.end());
  }
  return maps;
}

std::vector<std::uint32_t> eight_bit_nearest() {
  std::vector<std::uint32_t> tables = nearest_table(Sign::both);
  const auto positive = nearest_table(Sign::positive);
  tables.insert(tables.end(), positive.begin(), positive.end());
  return tables;
}

EightBitTensors::EightBitTensors(std::span<const EightBitMoments> tensors)
    : tensors_(tensors),
      maps_(std::span<const float>(eight_bit_maps())),
      nearest_(std::span<const std::uint32_t>(eight_bit_nearest())),
      pieces_(pieces_of(tensors, pieces_of_moments)) {}

EightBitBatch EightBitTensors::batch() const {
  return {.tensors = tensors_.data(),
          .maps = maps_.data(),
          .nearest = nearest_.data(),
          .pieces = list_of(pieces_)};
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
