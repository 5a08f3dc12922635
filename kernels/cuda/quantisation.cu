#include "kernels/cuda/quantisation.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

__device__ float power_of_two(int exponent) {  // of a normal float
  const unsigned bits = static_cast<unsigned>(exponent + 127) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// What the formats are made of; a code is what travels for x / scale.
struct Integer {
  float limit;

  __device__ unsigned code(float ratio) const {
    const float rounded = rintf(ratio);
    return static_cast<unsigned>(static_cast<int>(min(max(rounded, -limit), limit)));
  }
  __device__ float value(unsigned code, int bits) const {
    const int sign = 1 << (bits - 1);
    return static_cast<float>((static_cast<int>(code) ^ sign) - sign);
  }
};
struct Fp8 {
  int mantissa_bits, bias;
  float limit;

  __device__ unsigned code(float ratio) const {
    unsigned bits;
    std::memcpy(&bits, &ratio, sizeof bits);
    const unsigned sign = bits >> 24 & 0x80;
    const float magnitude = min(fabsf(ratio), limit);
    std::memcpy(&bits, &magnitude, sizeof bits);
    const int exponent = max(static_cast<int>(bits >> 23) - 127, 1 - bias);
    // In units of the last place; below `hidden` they are a subnormal's. A carry runs into the
    // exponent by itself. Two factors, each a power of two of a normal float.
    const int units =
        static_cast<int>(rintf(magnitude * power_of_two(mantissa_bits) * power_of_two(-exponent)));
    const int hidden = 1 << mantissa_bits;
    const int field =
        units < hidden ? units : ((exponent + bias) << mantissa_bits) + units - hidden;
    return sign | static_cast<unsigned>(field);
  }
  __device__ float value(unsigned code, int) const {
    const int hidden = 1 << mantissa_bits;
    const int mantissa = code & (hidden - 1), exponent = (code & 0x7f) >> mantissa_bits;
    const float magnitude =
        exponent == 0 ? mantissa * power_of_two(1 - bias - mantissa_bits)
                      : (mantissa + hidden) * power_of_two(exponent - bias - mantissa_bits);
    return code & 0x80 ? -magnitude : magnitude;
  }
};

struct Codec {
  bool integer;
  int bits;
  Integer ints;
  Fp8 fp8;

  __device__ float limit() const { return integer ? ints.limit : fp8.limit; }
  // What is not finite travels in the scale.
  __device__ unsigned code(float x, float scale) const {
    const float ratio = x / scale;
    if (scale == 0 || !isfinite(ratio)) return 0;
    return (integer ? ints.code(ratio) : fp8.code(ratio)) & ((1u << bits) - 1);
  }
  __device__ float value(unsigned code, float scale) const {
    code &= (1u << bits) - 1;
    return (integer ? ints.value(code, bits) : fp8.value(code, bits)) * scale;
  }
  // What a message of that scale does not say.
  __device__ float rest(float x, float scale) const { return x - value(code(x, scale), scale); }
};

Codec codec_of(WireFormat format) {
  switch (format) {
    case WireFormat::int8:
      return {true, 8, {127}, {3, 7, 448}};
    case WireFormat::int4:
      return {true, 4, {7}, {3, 7, 448}};
    case WireFormat::fp8_e5m2:
      return {false, 8, {127}, {2, 15, 57344}};
    default:
      return {false, 8, {127}, {3, 7, 448}};
  }
}

// Writes the message of a quad and returns what it does not say.
__device__ Quad encode(const Quantise& a, const Codec& codec, const Quad& c, float scale,
                       std::size_t e, std::size_t end) {
  unsigned codes = 0;
  Quad rest{};
  for (int i = 0; i < 4; ++i) {
    const unsigned code = e + i < end ? codec.code(c.at[i], scale) : 0;
    codes |= code << (i * codec.bits);
    rest.at[i] = c.at[i] - codec.value(code, scale);
  }
  const int bytes = (min(end - e, std::size_t{4}) * codec.bits + 7) / 8;
  std::uint8_t* to = a.payload + e * codec.bits / 8;
  if (bytes == 4) {
    *reinterpret_cast<unsigned*>(to) = codes;
  } else {
    for (int i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(codes >> (8 * i));
  }
  return rest;
}

__device__ float largest_of(float largest, const Quad& q) {
  for (int i = 0; i < 4; ++i) largest = max_or_nan(largest, fabsf(q.at[i]));
  return largest;
}

// A block of the grid holds a block of the message: one pass.
__global__ void __launch_bounds__(threads) block_kernel(Quantise a, const Codec codec) {
  constexpr int quads = largest_scale_block / (4 * threads);
  __shared__ float scale;
  const std::size_t block = a.quantiser.block, blocks = (a.elements + block - 1) / block;
  for (std::size_t b = blockIdx.x; b < blocks; b += gridDim.x) {
    const std::size_t begin = b * block, end = min(begin + block, a.elements);
    Quad c[quads];
    float largest = 0;
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const std::size_t e = begin + (i * threads + threadIdx.x) * std::size_t{4};
      c[i] = load_quad(a.x, e, end);
      if (a.owed != nullptr) {
        const Quad owed = load_quad(a.owed, e, end);
        for (int k = 0; k < 4; ++k) c[i].at[k] += owed.at[k];
      }
      largest = largest_of(largest, c[i]);
    }
    largest = block_max(largest);
    if (threadIdx.x == 0) a.scales[b] = scale = largest / codec.limit();
    __syncthreads();
#pragma unroll
    for (int i = 0; i < quads; ++i) {
      const std::size_t e = begin + (i * threads + threadIdx.x) * std::size_t{4};
      if (e >= end) continue;
      const Quad rest = encode(a, codec, c[i], scale, e, end);
      if (a.owed) store_quad(a.owed, e, end, rest);
    }
  }
}

// One scale: the largest first. What is owed still lies there as what was meant, beside the scale
// of the message that said a part of it ...
__global__ void __launch_bounds__(threads) largest_kernel(Quantise a, const Codec codec) {
  const float last_scale = a.owed != nullptr ? *a.scales : 0;
  float largest = 0;
  for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
    Quad c = load_quad(a.x, e, limit);
    if (a.owed != nullptr) {
      const Quad meant = load_quad(a.owed, e, limit);
      for (int i = 0; i < 4; ++i) c.at[i] += codec.rest(meant.at[i], last_scale);
      store_quad(a.owed, e, limit, c);
    }
    largest = largest_of(largest, c);
  });
  largest = block_max(largest);
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = largest;
}
__global__ void __launch_bounds__(finish_threads)
    finish_largest(Quantise a, const Codec codec, unsigned slots) {
  float largest = 0;
  for (unsigned i = threadIdx.x; i < slots; i += blockDim.x) {
    largest = max_or_nan(largest, static_cast<float>(a.workspace[i]));
  }
  largest = block_max(largest);
  if (threadIdx.x == 0) *a.scales = largest / codec.limit();
}
// ... and then the message, of what is meant now.
__global__ void __launch_bounds__(threads) encode_kernel(Quantise a, const Codec codec) {
  const float scale = *a.scales;
  for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
    encode(a, codec, load_quad(a.owed ? a.owed : a.x, e, limit), scale, e, limit);
  });
}

__global__ void __launch_bounds__(threads)
    resolve_codes_kernel(Quantise a, const Codec codec, float* error) {
  const float scale = *a.scales;
  for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
    Quad c = load_quad(a.owed, e, limit);
    for (int i = 0; i < 4; ++i) c.at[i] = codec.rest(c.at[i], scale);
    store_quad(error, e, limit, c);
  });
}

__global__ void __launch_bounds__(threads)
    sum_kernel(DequantiseSum a, const Codec codec, std::size_t bytes, std::size_t scales) {
  const std::size_t block = a.quantiser.block == 0 ? a.elements : a.quantiser.block;
  for_each_quad(a.elements, [&](std::size_t e, std::size_t limit) {
    Quad sum{};
    const std::size_t at = e * codec.bits / 8;  // of a whole number of bytes: e is a multiple of 4
    const int width = static_cast<int>((min(limit - e, std::size_t{4}) * codec.bits + 7) / 8);
    for (int m = 0; m < a.messages; ++m) {
      unsigned codes = 0;
      for (int i = 0; i < width; ++i) {
        codes |= static_cast<unsigned>(__ldg(a.payloads + m * bytes + at + i)) << (8 * i);
      }
      const float scale = a.scales[m * scales + e / block];
      for (int i = 0; i < 4; ++i) sum.at[i] += codec.value(codes >> (i * codec.bits), scale);
    }
    for (int i = 0; i < 4; ++i) sum.at[i] *= a.share;
    store_quad(a.x, e, limit, sum);
  });
}

bool has_scales(WireFormat format) { return scale_count({format, 0}, 1) != 0; }

}  // namespace

cudaError_t quantise(const Quantise& a, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  const std::size_t block = a.quantiser.block;
  if (!has_scales(a.quantiser.format) || block % 8 != 0 || block > largest_scale_block) {
    return cudaErrorInvalidValue;
  }
  if (const auto e = check_aligned(a.x, a.owed)) return e;
  if (reinterpret_cast<std::uintptr_t>(a.payload) % 4 != 0) return cudaErrorMisalignedAddress;
  const Codec codec = codec_of(a.quantiser.format);
  unsigned blocks = 0;
  if (block != 0) {
    const std::size_t count = scale_count(a.quantiser, a.elements);
    if (const auto e = grid_size(block_kernel, count, blocks)) return e;
    launch(block_kernel, blocks, threads, stream, a, codec);
    return cudaGetLastError();
  }
  if (const auto e = grid_size(largest_kernel, quads_of(a.elements), blocks)) return e;
  launch(largest_kernel, blocks, threads, stream, a, codec);
  launch(finish_largest, 1, finish_threads, stream, a, codec, blocks);
  if (const auto e = grid_size(encode_kernel, quads_of(a.elements), blocks)) return e;
  launch(encode_kernel, blocks, threads, stream, a, codec);
  return cudaGetLastError();
}

cudaError_t resolve_errors(const Quantise& a, float* error, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  if (!has_scales(a.quantiser.format) || a.quantiser.block != 0) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(a.owed, error)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(resolve_codes_kernel, quads_of(a.elements), blocks)) return e;
  launch(resolve_codes_kernel, blocks, threads, stream, a, codec_of(a.quantiser.format), error);
  return cudaGetLastError();
}

cudaError_t dequantise_sum(const DequantiseSum& a, cudaStream_t stream) {
  if (a.elements == 0) return cudaSuccess;
  if (!has_scales(a.quantiser.format) || a.quantiser.block % 8 != 0) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(a.x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(sum_kernel, quads_of(a.elements), blocks)) return e;
  launch(sum_kernel, blocks, threads, stream, a, codec_of(a.quantiser.format),
         payload_bytes(a.quantiser.format, a.elements), scale_count(a.quantiser, a.elements));
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
