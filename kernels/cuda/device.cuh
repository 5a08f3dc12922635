// Device code shared by the kernels: 16-byte accesses, signs, deterministic sums, grid size.
//
// All kernels are persistent: a grid that fills the device once strides over the work. A thread
// keeps its sum as two floats (RunningSum), a block adds the sums of its threads in double in a
// fixed order and writes one slot, and a second kernel adds the slots in a fixed order. The same
// device always gives the same bits.
//
// Everything is compiled without contraction to fused multiply-add, so that elementwise results
// have the bits of the CPU reference. The kernels wait for memory, not for arithmetic.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/cuda/half_precision.h"
#include "kernels/cuda/reduction.h"

namespace lambcast::cuda {

constexpr int threads = 256;
constexpr int warps = threads / 32;
constexpr int finish_threads = 1024;  // threads of the block that adds the sums of all others
constexpr unsigned all_lanes = 0xffffffffu;

// Four elements as an array, so that code reads the same for all of them.
struct Quad {
  float at[4];
};

// The sum of a thread as two floats: the sum and its rounding error (Knuth's two-sum). GPUs with
// two double units or fewer per multiprocessor and clock (B300, T4) would wait for a sum in double
// instead of memory. Additions lose nothing of note: the error of the sum is that of its addends,
// at most 2^-24 of their magnitudes for each operation on an addend.
struct PairSum {
  float high = 0, low = 0;

  __device__ void add(float x) {
    const float sum = high + x, part = sum - high;
    low += (high - (sum - part)) + (x - part);
    high = sum;
  }
  __device__ void add(const PairSum& other) {
    add(other.high);
    low += other.low;
  }
  __device__ double total() const { return static_cast<double>(high) + static_cast<double>(low); }
};

// Sum of squares or magnitudes of floats. Operations per element: four in single precision (1.75 to
// square a quad, 0.5 to check its range, 1.75 to add it) and none in double, while a sum in double
// takes three; three in double per thread. The squares of a quad are rounded three times, so that a
// sum has a relative error of at most 3 2^-24 = 1.8e-7, and its root 9e-8.
//
// Squares below 2^-80 or above 2^80, and those that are not numbers, are added to `rest` in double,
// where squares of finite floats neither vanish nor overflow.
struct RunningSum {
  PairSum ordinary;
  double rest = 0;

  __device__ void add(float x) { ordinary.add(x); }
  __device__ double total() const { return ordinary.total() + rest; }
};

__device__ inline bool is_ordinary(float sum) { return sum > 0x1p-80f && sum < 0x1p80f; }
__device__ inline bool is_zero(const Quad& q) {
  return q.at[0] == 0 && q.at[1] == 0 && q.at[2] == 0 && q.at[3] == 0;
}
__device__ inline void add_squares(RunningSum& sum, const Quad& q) {
  const float squares =
      (q.at[0] * q.at[0] + q.at[1] * q.at[1]) + (q.at[2] * q.at[2] + q.at[3] * q.at[3]);
  if (is_ordinary(squares))
    sum.add(squares);
  else if (!is_zero(q))
    for (int i = 0; i < 4; ++i) sum.rest += static_cast<double>(q.at[i]) * q.at[i];
}
__device__ inline void add_square(RunningSum& sum, float x) {
  const float square = x * x;
  if (is_ordinary(square))
    sum.add(square);
  else if (x != 0)
    sum.rest += static_cast<double>(x) * x;
}
__device__ inline void add_sizes(RunningSum& sum, const Quad& q) {
  const float sizes = (fabsf(q.at[0]) + fabsf(q.at[1])) + (fabsf(q.at[2]) + fabsf(q.at[3]));
  if (is_ordinary(sizes))
    sum.add(sizes);
  else if (!is_zero(q))
    for (int i = 0; i < 4; ++i) sum.rest += fabs(static_cast<double>(q.at[i]));
}

// Returns how many of the four elements from e on are below n.
__device__ inline int quad_part(std::size_t e, std::size_t n) {
  return e + 4 <= n ? 4 : e < n ? static_cast<int>(n - e) : 0;
}

// Reads and writes whole quads with single-instruction intrinsics, because the compiler splits a
// plain assignment into four next to a partial tail. These loads are volatile and stay in order:
// all loads before the first use are in flight together.
__device__ inline Quad load_quad(const float* x, std::size_t e, std::size_t n) {
  Quad q{};
  if (e + 4 <= n) {
    const float4 v = __ldcs(reinterpret_cast<const float4*>(x + e));
    q = {{v.x, v.y, v.z, v.w}};
  } else {
    for (int i = 0; i < 4; ++i) q.at[i] = e + i < n ? x[e + i] : 0.0f;
  }
  return q;
}
// Overloads of one name for the conversions of both 16-bit formats.
__device__ inline float to_float(__half x) { return __half2float(x); }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float2 to_floats(__half2 x) { return __half22float2(x); }
__device__ inline float2 to_floats(__nv_bfloat162 x) { return __bfloat1622float2(x); }

// Reads four 16-bit values in one 8-byte access; Two is __half2 or __nv_bfloat162.
template <typename Two>
struct HalfQuad {
  Two low, high;
};

template <typename Two, typename Half>
__device__ Quad load_half_quad(const Half* x, std::size_t e, std::size_t n) {
  Quad q{};
  if (e + 4 <= n) {
    const uint2 bits = __ldcs(reinterpret_cast<const uint2*>(x + e));
    HalfQuad<Two> half;
    std::memcpy(&half, &bits, sizeof half);
    const float2 low = to_floats(half.low), high = to_floats(half.high);
    q = {{low.x, low.y, high.x, high.y}};
  } else {
    for (int i = 0; i < 4; ++i) q.at[i] = e + i < n ? to_float(x[e + i]) : 0.0f;
  }
  return q;
}
__device__ inline Quad load_quad(const __half* x, std::size_t e, std::size_t n) {
  return load_half_quad<__half2>(x, e, n);
}
__device__ inline Quad load_quad(const __nv_bfloat16* x, std::size_t e, std::size_t n) {
  return load_half_quad<__nv_bfloat162>(x, e, n);
}
__device__ inline void store_quad(float* x, std::size_t e, std::size_t n, const Quad& q) {
  if (e + 4 <= n) {
    __stcs(reinterpret_cast<float4*>(x + e), make_float4(q.at[0], q.at[1], q.at[2], q.at[3]));
  } else {
    for (int i = 0; i < 4 && e + i < n; ++i) x[e + i] = q.at[i];
  }
}
// Returns the quad rounded to 16 bits per element.
__device__ inline uint2 rounded(const Quad& q, HalfFormat format) {
  uint2 bits;
  if (format == HalfFormat::bf16) {
    const HalfQuad<__nv_bfloat162> half = {__floats2bfloat162_rn(q.at[0], q.at[1]),
                                           __floats2bfloat162_rn(q.at[2], q.at[3])};
    std::memcpy(&bits, &half, sizeof bits);
  } else {
    const HalfQuad<__half2> half = {__floats2half2_rn(q.at[0], q.at[1]),
                                    __floats2half2_rn(q.at[2], q.at[3])};
    std::memcpy(&bits, &half, sizeof bits);
  }
  return bits;
}
// Writes the 16-bit copy of a quad; does nothing if x is null.
__device__ inline void store_quad(HalfPointer x, std::size_t e, std::size_t n, const Quad& q) {
  if (x.bits == nullptr) return;
  const uint2 bits = rounded(q, x.format);
  if (e + 4 <= n) {
    __stcs(reinterpret_cast<uint2*>(x.bits + e), bits);
  } else {
    std::uint16_t each[4];
    std::memcpy(each, &bits, sizeof each);
    for (int i = 0; i < 4 && e + i < n; ++i) x.bits[e + i] = each[i];
  }
}

// Calls f(e, limit) for every quad of n elements, divided over the grid. For a whole quad `limit`
// is e + 4; the compiler then uses single 16-byte accesses without branches between them.
template <typename F>
__device__ void for_each_quad(std::size_t n, F f) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads * 4;
  for (std::size_t e = (blockIdx.x * std::size_t{threads} + threadIdx.x) * 4; e < n; e += stride) {
    if (e + 4 <= n)
      f(e, e + 4);
    else
      f(e, n);
  }
}

// Calls f(e, limit, load(e, limit)) for every quad, with four loads in flight at once. For kernels
// that read only this: memory answers after some 800 ns, and one load per thread does not keep it
// busy during this time.
template <typename Load, typename F>
__device__ void for_each_loaded_quad(std::size_t n, Load load, F f) {
  constexpr int ahead = 4;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads * 4;
  std::size_t e = (blockIdx.x * std::size_t{threads} + threadIdx.x) * 4;
  for (; e + (ahead - 1) * stride + 4 <= n; e += ahead * stride) {
    decltype(load(e, n)) q[ahead];
    for (int i = 0; i < ahead; ++i) q[i] = load(e + i * stride, e + i * stride + 4);
    for (int i = 0; i < ahead; ++i) f(e + i * stride, e + i * stride + 4, q[i]);
  }
  for (; e < n; e += stride) f(e, n, load(e, n));
}

// 0, -0.0 and NaN count as positive.
__device__ inline bool positive(float x) { return !(x < 0.0f); }
__device__ inline float with_sign(float magnitude, bool plus) {
  return plus ? magnitude : -magnitude;
}
// Returns the error feedback of a compensated value that was sent as scale * sgn(c).
__device__ inline float owed(float c, float scale) { return c - with_sign(scale, positive(c)); }

// Returns the sign of element e, packed with the most significant bit first.
__device__ inline bool sign_at(const std::uint8_t* signs, std::size_t e) {
  return (signs[e >> 3] >> (7 - (e & 7))) & 1;
}
// Returns the signs of the aligned quad at e (a multiple of 4): element e + i is positive if bit 3
// - i is set. Higher bits are not cleared.
__device__ inline unsigned nibble_at(const std::uint8_t* signs, std::size_t e) {
  return static_cast<unsigned>(__ldg(signs + (e >> 3))) >> ((e & 4) ? 0 : 4);
}

// Returns a hash of x (splitmix64).
__device__ inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
__device__ T warp_sum(T x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_down_sync(all_lanes, x, offset);
  return x;
}
__device__ inline unsigned to_bits(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
__device__ inline float from_bits(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
__device__ constexpr unsigned exponent_bits(int exponent) {  // bits of 2^exponent, a normal float
  return static_cast<unsigned>(exponent + 127) << 23;
}
// Magnitudes have the same order as these unsigned integers, and NaNs are above all numbers.
__device__ inline unsigned magnitude_bits(float x) { return to_bits(x) & 0x7fffffff; }

// Returns the larger value; NaN if either value is NaN.
__device__ inline float max_or_nan(float a, float b) { return (a != a || a >= b) ? a : b; }
__device__ inline float warp_max(float x) {
  for (int offset = 16; offset > 0; offset /= 2) {
    x = max_or_nan(x, __shfl_down_sync(all_lanes, x, offset));
  }
  return x;
}

// Returns the sum over the block, valid in thread 0. May be called again immediately.
__device__ inline double block_sum(double x) {
  __shared__ double per_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) per_warp[warp] = x;
  __syncthreads();
  x = threadIdx.x < blockDim.x / 32 ? per_warp[lane] : 0.0;
  return warp == 0 ? warp_sum(x) : 0.0;
}
__device__ inline float block_max(float x) {
  __shared__ float per_warp[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) per_warp[warp] = x;
  __syncthreads();
  x = threadIdx.x < blockDim.x / 32 ? per_warp[lane] : per_warp[0];
  return warp == 0 ? warp_max(x) : 0.0f;
}

// Computes the blocks of a persistent grid: the number that the device can hold of this kernel at
// once, at most one for each of the `items` of work, reduction_slots, and the environment's
// LAMBCAST_MOST_BLOCKS. With few blocks every block strides even with little work, which a race
// checker has to see.
cudaError_t grid_of(const void* kernel, std::size_t items, unsigned& blocks);
template <typename... Arguments>
cudaError_t grid_size(void (*kernel)(Arguments...), std::size_t items, unsigned& blocks) {
  return grid_of(reinterpret_cast<const void*>(kernel), items, blocks);
}

// Launches kernel<<<blocks, block_threads, 0, stream>>>(arguments...).
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned block_threads,
            cudaStream_t stream, Arguments... arguments) {
#ifdef LAMBCAST_CUDA_ON_CPU
  static_cast<void>(stream);
  cuda_on_cpu::run(blocks, block_threads, [&] { kernel(arguments...); });
#else
  kernel<<<blocks, block_threads, 0, stream>>>(arguments...);
#endif
}

// Returns the number of blocks, with one quad per thread, that `elements` fill.
inline std::size_t quads_of(std::size_t elements) {
  return (elements + 4 * threads - 1) / (4 * threads);
}

// Alignment of a quad: 16 bytes, for 16-bit elements 8.
inline bool is_aligned(const void* x) { return reinterpret_cast<std::uintptr_t>(x) % 16 == 0; }
inline bool is_aligned(HalfPointer x) { return reinterpret_cast<std::uintptr_t>(x.bits) % 8 == 0; }

// Returns cudaErrorMisalignedAddress unless all pointers are aligned.
template <typename... Pointers>
cudaError_t check_aligned(Pointers... pointers) {
  return (is_aligned(pointers) && ...) ? cudaSuccess : cudaErrorMisalignedAddress;
}

}  // namespace lambcast::cuda
