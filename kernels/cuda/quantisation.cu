#include "kernels/cuda/quantisation.h"

#include <bit>
#include <type_traits>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/wire_code.cuh"

namespace lambcast::cuda {
namespace {

// Calls f(code) with the code of `format`, so that a kernel has its format at compile time.
template <typename F>
cudaError_t with_code(WireFormat format, F f) {
  switch (format) {
    case WireFormat::int8:
      return f(IntegerCode<8>());
    case WireFormat::int4:
      return f(IntegerCode<4>());
    case WireFormat::fp8_e5m2:
      return f(FloatCode<2, 15>());
    default:
      return f(FloatCode<3, 7>());
  }
}

// The codes of a quad. Quads begin at multiples of 4 elements, so the codes begin at a whole byte.
template <typename Code>
using Codes = std::conditional_t<Code::bits == 8, std::uint32_t, std::uint16_t>;
template <typename Code>
__device__ std::size_t byte_of(std::size_t e) {
  return e / (8 / Code::bits);
}
template <typename Code>
__device__ int bytes_of(std::size_t e, std::size_t end) {
  return (quad_part(e, end) * Code::bits + 7) / 8;
}

template <typename Code>
__device__ void store_codes(std::uint8_t* payload, std::size_t e, std::size_t end, unsigned codes) {
  std::uint8_t* const to = payload + byte_of<Code>(e);
  if (e + 4 <= end) {
    *reinterpret_cast<Codes<Code>*>(to) = static_cast<Codes<Code>>(codes);
  } else {
    // Elements beyond the end were read as 0, which has the code 0.
    for (int i = 0; i < int(sizeof(Codes<Code>)); ++i)
      if (i < bytes_of<Code>(e, end)) to[i] = static_cast<std::uint8_t>(codes >> (8 * i));
  }
}

__device__ unsigned largest_of(unsigned largest, const Quad& q) {
  for (int i = 0; i < 4; ++i) largest = max(largest, magnitude_bits(q.at[i]));
  return largest;
}

// A block of the message belongs to a group of threads, a power of two, with `group_quads` quads
// each.
constexpr int group_quads = 4;
static_assert(4 * group_quads * threads == largest_scale_block);
unsigned group_of(std::size_t block) {
  return static_cast<unsigned>(std::bit_ceil((block + 4 * group_quads - 1) / (4 * group_quads)));
}

// Returns the largest value of a group in all its threads. `per_warp` must not be the one of the
// previous call, so that one barrier is enough.
__device__ unsigned group_max(unsigned x, unsigned group, unsigned* per_warp) {
#pragma unroll
  for (unsigned offset = 16; offset > 0; offset /= 2) {
    if (offset < group) x = max(x, __shfl_xor_sync(all_lanes, x, offset));
  }
  if (group <= 32) return x;
  const unsigned warp = threadIdx.x / 32, several = group / 32, first = warp & (0u - several);
  if (threadIdx.x % 32 == 0) per_warp[warp] = x;
  __syncthreads();
  for (unsigned i = 0; i < several; ++i) x = max(x, per_warp[first + i]);
  return x;
}

// The quads of a thread in a group: e, e + stride, ... `whole`, if all are whole, is a compile-time
// constant.
template <bool whole>
__device__ std::size_t quad_end(std::size_t e, std::size_t end) {
  return whole ? e + 4 : end;
}
template <bool whole, bool has_owed>
__device__ void load_group(const Quantise& a, std::size_t e, std::size_t stride, std::size_t end,
                           Quad (&c)[group_quads]) {
#pragma unroll
  for (int i = 0; i < group_quads; ++i)
    c[i] = load_quad(a.x, e + i * stride, quad_end<whole>(e + i * stride, end));
  if constexpr (has_owed) {
    Quad owed[group_quads];
#pragma unroll
    for (int i = 0; i < group_quads; ++i)
      owed[i] = load_quad(a.owed, e + i * stride, quad_end<whole>(e + i * stride, end));
#pragma unroll
    for (int i = 0; i < group_quads; ++i)
      for (int k = 0; k < 4; ++k) c[i].at[k] += owed[i].at[k];
  }
}
template <typename Code, bool whole, bool has_owed>
__device__ void store_group(const Quantise& a, std::size_t e, std::size_t stride, std::size_t end,
                            const Quad (&c)[group_quads], const Scale& scale) {
#pragma unroll
  for (int i = 0; i < group_quads; ++i, e += stride) {
    if (!whole && e >= end) return;
    const Encoded quad = encode<Code>(c[i], scale);
    store_codes<Code>(a.payload, e, quad_end<whole>(e, end), quad.codes);
    if (has_owed) store_quad(a.owed, e, quad_end<whole>(e, end), quad.rest);
  }
}

// One pass: a block of the message stays in registers until its scale is known. A block of the grid
// holds 16 KB of it, with the whole message in flight at once, and waits once for all its threads.
template <typename Code, bool has_owed>
__global__ void __launch_bounds__(threads)
    block_kernel(Quantise a, unsigned group, std::size_t blocks) {
  __shared__ unsigned per_warp[2][warps];
  const unsigned groups = threads / group, number = threadIdx.x / group, lane = threadIdx.x % group;
  const std::size_t block = a.quantiser.block, stride = 4 * std::size_t{group};
  unsigned turn = 0;
  for (std::size_t first = blockIdx.x * std::size_t{groups}; first < blocks;
       first += gridDim.x * std::size_t{groups}, turn ^= 1) {
    const std::size_t b = first + number, begin = b * block, e = begin + 4 * lane,
                      end = min(begin + block, a.elements);
    const bool whole = block == group_quads * stride && (first + groups) * block <= a.elements;
    Quad c[group_quads];
    if (whole)
      load_group<true, has_owed>(a, e, stride, end, c);
    else
      load_group<false, has_owed>(a, e, stride, end, c);
    unsigned largest = 0;
#pragma unroll
    for (const Quad& q : c) largest = largest_of(largest, q);
    const Scale scale(from_bits(group_max(largest, group, per_warp[turn])) / Code::limit);
    if (lane == 0 && b < blocks) a.scales[b] = scale.value;
    if (whole)
      store_group<Code, true, has_owed>(a, e, stride, end, c, scale);
    else
      store_group<Code, false, has_owed>(a, e, stride, end, c, scale);
  }
}

// With one scale, the largest value is found first. The error feedback is still unresolved: the
// last compensated value, with the scale of its message.
template <typename Code, bool has_owed>
__global__ void __launch_bounds__(threads) largest_kernel(Quantise a) {
  unsigned largest = 0;
  if constexpr (has_owed) {
    const Scale last_scale(*a.scales);
    for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
      Quad c = load_quad(a.x, e, limit);
      const Quad meant = load_quad(a.owed, e, limit), rest = encode<Code>(meant, last_scale).rest;
      for (int i = 0; i < 4; ++i) c.at[i] += rest.at[i];
      store_quad(a.owed, e, limit, c);
      largest = largest_of(largest, c);
    });
  } else {
    for_each_loaded_quad(
        a.elements, [&](std::size_t e, std::size_t limit) { return load_quad(a.x, e, limit); },
        [&](std::size_t, std::size_t, const Quad& x) { largest = largest_of(largest, x); });
  }
  const float of_all = block_max(from_bits(largest));
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = of_all;
}
__global__ void __launch_bounds__(finish_threads)
    finish_largest(Quantise a, float code_limit, unsigned slots) {
  float largest = 0;
  for (unsigned i = threadIdx.x; i < slots; i += blockDim.x) {
    largest = max_or_nan(largest, static_cast<float>(a.workspace[i]));
  }
  largest = block_max(largest);
  if (threadIdx.x == 0) *a.scales = largest / code_limit;
}
// With one scale: writes the message of the compensated values, after largest_kernel.
template <typename Code>
__global__ void __launch_bounds__(threads) encode_kernel(Quantise a) {
  const Scale scale(*a.scales);
  const float* const meant = a.owed != nullptr ? a.owed : a.x;
  for_each_loaded_quad(
      a.elements, [&](std::size_t e, std::size_t limit) { return load_quad(meant, e, limit); },
      [&](std::size_t e, std::size_t limit, const Quad& c) {
        store_codes<Code>(a.payload, e, limit, encode<Code>(c, scale).codes);
      });
}

template <typename Code>
__global__ void __launch_bounds__(threads) resolve_codes_kernel(Quantise a, float* error) {
  const Scale scale(*a.scales);
  for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
    store_quad(error, e, limit, encode<Code>(load_quad(a.owed, e, limit), scale).rest);
  });
}

// Addresses of messages and of their scales. For blocks of a power of two, the scale is found by a
// shift, because a 64-bit division takes as long as all other work. This includes one scale for
// all.
struct Messages {
  DequantiseSum of;
  std::size_t bytes, scales;
  int block_shift;  // -1: needs a division
  unsigned mask;  // mask of Code::values

  Messages(const DequantiseSum& a, unsigned of_code)
      : of(a),
        bytes(payload_bytes(a.quantiser.format, a.elements)),
        scales(scale_count(a.quantiser, a.elements)),
        block_shift(a.quantiser.block == 0                   ? 63
                    : std::has_single_bit(a.quantiser.block) ? std::countr_zero(a.quantiser.block)
                                                             : -1),
        mask(of_code) {}
  __device__ std::size_t block(std::size_t e) const {
    return block_shift >= 0 ? e >> block_shift : e / of.quantiser.block;
  }
};

// Reads the codes of a quad. If messages have an odd size, all except the first are read byte by
// byte.
template <typename Code, bool aligned>
__device__ unsigned load_codes(const std::uint8_t* from, int bytes) {
  if constexpr (aligned) return __ldg(reinterpret_cast<const Codes<Code>*>(from));
  unsigned codes = 0;
  for (int i = 0; i < int(sizeof(Codes<Code>)); ++i)
    if (i < bytes) codes |= static_cast<unsigned>(__ldg(from + i)) << (8 * i);
  return codes;
}
template <typename Code>
__device__ void add_codes(Quad& sum, unsigned codes, unsigned mask, float scale) {
  const Quad values = Code::values(codes, mask);
  for (int i = 0; i < 4; ++i) sum.at[i] += values.at[i] * scale;
}
__device__ void store_sum(const Messages& s, std::size_t e, std::size_t end, Quad sum) {
  for (int i = 0; i < 4; ++i) sum.at[i] *= s.of.share;
  store_quad(s.of.x, e, end, sum);
}

// A thread sums `quads` whole quads at once, with the data of `ahead` messages in flight together.
template <typename Code, bool aligned, int quads, int ahead>
__device__ void sum_quads(const Messages& s, std::size_t e) {
  constexpr std::size_t stride = 4 * threads;
  Quad sum[quads]{};
  std::size_t block[quads];
#pragma unroll
  for (int k = 0; k < quads; ++k) block[k] = s.block(e + k * stride);
  for (int first = 0; first < s.of.messages; first += ahead) {
    unsigned codes[ahead][quads];
    float scale[ahead][quads];
#pragma unroll
    for (int m = 0; m < ahead; ++m) {
      if (first + m >= s.of.messages) continue;
      const std::uint8_t* const from = s.of.payloads + (first + m) * s.bytes + byte_of<Code>(e);
      const float* const scales = s.of.scales + (first + m) * s.scales;
#pragma unroll
      for (int k = 0; k < quads; ++k) {
        codes[m][k] =
            load_codes<Code, aligned>(from + byte_of<Code>(k * stride), sizeof(Codes<Code>));
        scale[m][k] = __ldg(scales + block[k]);
      }
    }
#pragma unroll
    for (int m = 0; m < ahead; ++m) {
      if (first + m >= s.of.messages) continue;
#pragma unroll
      for (int k = 0; k < quads; ++k) add_codes<Code>(sum[k], codes[m][k], s.mask, scale[m][k]);
    }
  }
#pragma unroll
  for (int k = 0; k < quads; ++k) store_sum(s, e + k * stride, e + k * stride + 4, sum[k]);
}
// Sums one quad of the last tile of the grid, which may be partial.
template <typename Code>
__device__ void sum_quad(const Messages& s, std::size_t e) {
  const int bytes = bytes_of<Code>(e, s.of.elements);
  const float* scale = s.of.scales + s.block(e);
  const std::uint8_t* from = s.of.payloads + byte_of<Code>(e);
  Quad sum{};
#pragma unroll 1
  for (int m = 0; m < s.of.messages; ++m, from += s.bytes, scale += s.scales)
    add_codes<Code>(sum, load_codes<Code, false>(from, bytes), s.mask, *scale);
  store_sum(s, e, s.of.elements, sum);
}
template <typename Code, bool aligned, int quads, int ahead>
__global__ void __launch_bounds__(threads) sum_kernel(const Messages s) {
  constexpr std::size_t tile = 4 * threads * quads;
  const std::size_t elements = s.of.elements;
  for (std::size_t begin = blockIdx.x * tile; begin < elements; begin += gridDim.x * tile) {
    if (begin + tile <= elements) {
      sum_quads<Code, aligned, quads, ahead>(s, begin + 4 * threadIdx.x);
      continue;
    }
    for (std::size_t e = begin + 4 * threadIdx.x; e < elements; e += 4 * threads)
      sum_quad<Code>(s, e);
  }
}

bool has_scales(WireFormat format) { return scale_count({format, 0}, 1) != 0; }
bool is_payload_aligned(const std::uint8_t* payload) {
  return reinterpret_cast<std::uintptr_t>(payload) % 4 == 0;
}

template <typename Code>
cudaError_t quantise_blocks(const Quantise& a, cudaStream_t stream) {
  const unsigned group = group_of(a.quantiser.block);
  const std::size_t blocks = scale_count(a.quantiser, a.elements);
  const auto kernel = a.owed != nullptr ? block_kernel<Code, true> : block_kernel<Code, false>;
  const std::size_t groups = threads / group;
  unsigned grid = 0;
  if (const auto e = grid_size(kernel, (blocks + groups - 1) / groups, grid)) return e;
  launch(kernel, grid, threads, stream, a, group, blocks);
  return cudaGetLastError();
}
template <typename Code>
cudaError_t quantise_whole(const Quantise& a, cudaStream_t stream) {
  const auto largest = a.owed != nullptr ? largest_kernel<Code, true> : largest_kernel<Code, false>;
  unsigned grid = 0;
  if (const auto e = grid_size(largest, quads_of(a.elements), grid)) return e;
  launch(largest, grid, threads, stream, a);
  launch(finish_largest, 1, finish_threads, stream, a, Code::limit, grid);
  if (const auto e = grid_size(encode_kernel<Code>, quads_of(a.elements), grid)) return e;
  launch(encode_kernel<Code>, grid, threads, stream, a);
  return cudaGetLastError();
}
template <typename Code, bool aligned, int quads, int ahead>
cudaError_t sum(const Messages& s, cudaStream_t stream) {
  const auto kernel = sum_kernel<Code, aligned, quads, ahead>;
  unsigned grid = 0;
  if (const auto e = grid_size(kernel, (quads_of(s.of.elements) + quads - 1) / quads, grid))
    return e;
  launch(kernel, grid, threads, stream, s);
  return cudaGetLastError();
}

}  // namespace

cudaError_t quantise(const Quantise& a, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  const std::size_t block = a.quantiser.block;
  if (!has_scales(a.quantiser.format) || block % 8 != 0 || block > largest_scale_block) {
    return cudaErrorInvalidValue;
  }
  if (const auto e = check_aligned(a.x, a.owed)) return e;
  if (!is_payload_aligned(a.payload)) return cudaErrorMisalignedAddress;
  return with_code(a.quantiser.format, [&](auto code) {
    using Code = decltype(code);
    return block != 0 ? quantise_blocks<Code>(a, stream) : quantise_whole<Code>(a, stream);
  });
}

cudaError_t resolve_errors(const Quantise& a, float* error, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  if (!has_scales(a.quantiser.format) || a.quantiser.block != 0) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(a.owed, error)) return e;
  return with_code(a.quantiser.format, [&](auto code) {
    const auto kernel = resolve_codes_kernel<decltype(code)>;
    unsigned blocks = 0;
    if (const auto e = grid_size(kernel, quads_of(a.elements), blocks)) return e;
    launch(kernel, blocks, threads, stream, a, error);
    return cudaGetLastError();
  });
}

cudaError_t dequantise_sum(const DequantiseSum& a, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  if (!has_scales(a.quantiser.format) || a.quantiser.block % 8 != 0) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(a.x)) return e;
  if (!is_payload_aligned(a.payloads)) return cudaErrorMisalignedAddress;
  return with_code(a.quantiser.format, [&](auto code) {
    using Code = decltype(code);
    const Messages s(a, Code::mask);
    if (a.messages == 1) return sum<Code, true, 4, 1>(s, stream);
    return s.bytes % sizeof(Codes<Code>) == 0 ? sum<Code, true, 2, 4>(s, stream)
                                              : sum<Code, false, 2, 4>(s, stream);
  });
}

}  // namespace lambcast::cuda
