#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/cuda/eight_bit.h"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

static_assert(eight_bit_block == 8 * 32, "a warp has a block, a lane two quads of it");

// So many that the table of pieces is thin beside them.
constexpr std::size_t blocks_of_piece = 4 * warps;

std::size_t pieces_of_moments(const EightBitMoments& s) {
  constexpr std::size_t elements = blocks_of_piece * eight_bit_block;
  return (s.elements + elements - 1) / elements;
}

struct EightBitConstants {
  float b1, rest1, b2, rest2, rate, eps;
};

// Magnitudes from 2^-21, below which hardly a value of a map lies, to 1 in bins of six bits of the
// mantissa; bin 0 is for all below, the last one for all from 1 on.
constexpr int bin_shift = 23 - 6;
constexpr std::uint32_t below_bins = (std::uint32_t{127 - 21} << 6) - 1;
constexpr std::uint32_t bins = 21 * 64 + 2;

// Where the search for the nearest value begins: how many of the map lie below all of a bin, for
// positive x and then for negative ones.
std::vector<std::uint8_t> eight_bit_bins() {
  const auto maps = eight_bit_maps();
  const auto edge = [](std::uint32_t bin) {
    if (bin == bins) return std::numeric_limits<float>::infinity();
    return bin == 0 ? 0.0f : std::bit_cast<float>((below_bins + bin) << bin_shift);
  };
  std::vector<std::uint8_t> starts;
  for (const auto map : {std::span(maps).first(256), std::span(maps).last(256)}) {
    for (std::uint32_t bin = 0; bin < bins; ++bin)
      starts.push_back(
          static_cast<std::uint8_t>(std::ranges::lower_bound(map, edge(bin)) - map.begin()));
    for (std::uint32_t bin = 0; bin < bins; ++bin)
      starts.push_back(
          static_cast<std::uint8_t>(std::ranges::upper_bound(map, -edge(bin + 1)) - map.begin()));
  }
  return starts;
}

// Of two as near the lower one; 0 for no number.
__device__ std::uint8_t nearest(const float* map, const std::uint8_t* starts, float x) {
  if (!(x == x)) return 0;
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const std::uint32_t size = (bits & 0x7fffffffu) >> bin_shift;
  const std::uint32_t bin = min(size > below_bins ? size - below_bins : 0u, bins - 1);
  int low = starts[bin + (bits >> 31) * bins];  // map[low - 1] < x
  while (low < 256 && map[low] < x) ++low;
  if (low == 0) return 0;
  if (low == 256) return 255;
  return static_cast<std::uint8_t>(x - map[low - 1] <= map[low] - x ? low - 1 : low);
}

// The largest magnitude of the warp, to all lanes; a NaN counts as nothing, as in the reference.
__device__ float largest_of_warp(const Quad (&x)[2]) {
  float largest = 0;
  for (const Quad& q : x)
    for (int i = 0; i < 4; ++i) largest = fabsf(q.at[i]) > largest ? fabsf(q.at[i]) : largest;
  for (int offset = 16; offset > 0; offset /= 2)
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, offset));
  return largest;
}

// Accesses to four elements from e on: single ones where `whole`, else one by one below n.
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
  // Four codes, the first in the lowest bits.
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

// One of the two moments of a block, in 8 bits or in 32.
struct Moment {
  std::uint8_t* codes;
  float* largest;
  float* x;
  const float* map;
  const std::uint8_t* starts;

  // What `decoded` needs, loaded only: the largest by the lane that will write it, lest another
  // read it later.
  struct Loaded {
    Quad x[2];
    std::uint32_t codes[2];
    float largest;
  };
  template <bool whole>
  __device__ Loaded load(const Elements<whole>& access, std::size_t b, std::size_t e) const {
    Loaded loaded{};
    for (int h = 0; h < 2; ++h) {
      if (codes == nullptr)
        loaded.x[h] = access.load(x, e + 128 * h);
      else
        loaded.codes[h] = access.load(codes, e + 128 * h);
    }
    if (codes != nullptr && threadIdx.x % 32 == 0) loaded.largest = largest[b];
    return loaded;
  }
  __device__ float decoded(const Loaded& loaded, int h, int i) const {
    if (codes == nullptr) return loaded.x[h].at[i];
    return map[(loaded.codes[h] >> (8 * i)) & 255] * loaded.largest;
  }
  // All lanes of the warp.
  template <bool whole>
  __device__ void store(const Elements<whole>& access, std::size_t b, std::size_t e,
                        const Quad (&moved)[2]) const {
    if (codes == nullptr) {
      for (int h = 0; h < 2; ++h) access.store(x, e + 128 * h, moved[h]);
      return;
    }
    const float most = largest_of_warp(moved);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      std::uint32_t each = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float ratio = most == 0 ? 0.0f : moved[h].at[i] / most;
        each |= std::uint32_t{nearest(map, starts, ratio)} << (8 * i);
      }
      access.store(codes, e + 128 * h, each);
    }
    if (threadIdx.x % 32 == 0) largest[b] = most;
  }
};

// A step on block b by a warp.
template <bool whole>
__device__ void step_block(const EightBitMoments& s, const Moment& of_m, const Moment& of_v,
                           std::size_t b, float factor, const EightBitConstants& c) {
  const Elements<whole> access{s.elements};
  const std::size_t e = b * eight_bit_block + 4 * (threadIdx.x % 32);
  Quad low[2] = {access.load(s.low, e), access.load(s.low, e + 128)}, m[2], v[2];
  auto m_before = of_m.load(access, b, e), v_before = of_v.load(access, b, e);
  m_before.largest = __shfl_sync(all_lanes, m_before.largest, 0);
  v_before.largest = __shfl_sync(all_lanes, v_before.largest, 0);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float g = low[h].at[i] * factor;
      m[h].at[i] = c.b1 * of_m.decoded(m_before, h, i) + c.rest1 * g;
      v[h].at[i] = c.b2 * of_v.decoded(v_before, h, i) + c.rest2 * (g * g);
      low[h].at[i] = c.rate * m[h].at[i] / (sqrtf(v[h].at[i]) + c.eps);
      if (!whole && e + 128 * h + i >= s.elements) m[h].at[i] = v[h].at[i] = 0;
    }
    access.store(s.low, e + 128 * h, low[h]);
  }
  of_m.store(access, b, e, m);
  of_v.store(access, b, e, v);
}

__device__ bool is_aligned_to(const void* x, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(x) % bytes == 0;
}

__global__ void __launch_bounds__(threads, 3)  // else the compiler spills for a fourth block
    small_adam_kernel(const EightBitBatch batch, const float* clipped, const EightBitConstants c) {
  __shared__ float maps[512];
  __shared__ std::uint8_t starts[4 * bins];
  for (int i = threadIdx.x; i < 512; i += threads) maps[i] = batch.maps[i];
  for (int i = threadIdx.x; i < static_cast<int>(4 * bins); i += threads)
    starts[i] = batch.starts[i];
  __syncthreads();
  for (int k = blockIdx.x; k < batch.pieces.count; k += gridDim.x) {
    const TensorPiece piece = batch.pieces.at[k];
    const EightBitMoments s = batch.tensors[piece.tensor];
    const float factor = clipped == nullptr ? 1.0f : clipped[piece.tensor];
    const Moment m{s.m8, s.m_largest, s.m, maps, starts};
    const Moment v{s.v8, s.v_largest, s.v, maps + 256, starts + 2 * bins};
    const bool aligned = is_aligned_to(s.low, 16) && is_aligned_to(s.m, 16) &&
                         is_aligned_to(s.v, 16) && is_aligned_to(s.m8, 4) && is_aligned_to(s.v8, 4);
    const std::size_t first = piece.index * blocks_of_piece;
    const std::size_t end =
        min(first + blocks_of_piece, (s.elements + eight_bit_block - 1) / eight_bit_block);
    for (std::size_t b = first + threadIdx.x / 32; b < end; b += warps) {
      if (aligned && (b + 1) * eight_bit_block <= s.elements)
        step_block<true>(s, m, v, b, factor, c);
      else
        step_block<false>(s, m, v, b, factor, c);
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
      starts_(std::span<const std::uint8_t>(eight_bit_bins())),
      pieces_(pieces_of(tensors, pieces_of_moments)) {}

EightBitBatch EightBitTensors::batch() const {
  return {.tensors = tensors_.data(),
          .maps = maps_.data(),
          .starts = starts_.data(),
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
