#include "kernels/cuda/compression.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

// A warp works on tiles of 256 elements. Lane l owns the quads at 4 l and at 128 + 4 l, so that
// every float access of the warp is one contiguous run; lanes 2 j and 2 j + 1 own the halves of
// byte j of each 128 elements, swap one nibble and write one byte each.
constexpr std::size_t tile = 256;

__device__ unsigned nibble_of(const Quad& c) {
  unsigned nibble = 0;
  for (int i = 0; i < 4; ++i) nibble |= positive(c.at[i]) ? 8u >> i : 0u;
  return nibble;
}

// Writes the signs of the tile at `begin`; all lanes of the warp must call it.
__device__ void store_signs(std::uint8_t* signs, std::size_t begin, std::size_t end,
                            unsigned first, unsigned second) {
  const unsigned lane = threadIdx.x % 32;
  const bool even = lane % 2 == 0;
  const unsigned other = __shfl_xor_sync(all_lanes, even ? second : first, 1);
  const unsigned byte = even ? first << 4 | other : other << 4 | second;
  const std::size_t at = begin / 8 + (even ? 0 : 16) + lane / 2;
  if (at * 8 < end) signs[at] = static_cast<std::uint8_t>(byte);
}

__device__ double square_sum(const Quad& c) {
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(c.at[i]) * c.at[i];
  return sum;
}

// The tensor that holds element e < offsets[tensors]; empty tensors are passed over.
__device__ int tensor_of(const std::size_t* offsets, int tensors, std::size_t e) {
  int low = 0, high = tensors;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (offsets[middle] <= e) low = middle;
    else high = middle;
  }
  return low;
}

// The local value of four elements from e on, where tensors may change in between.
__device__ Quad local_value(const WorkerPhase& a, std::size_t e, float b1, float one_minus_b1) {
  Quad x = load_quad(a.x, e, a.x_elements);
  if (a.gradient == nullptr || e >= a.elements) return x;
  const Quad g = load_quad(a.gradient, e, a.elements);
  int t = a.scaling ? tensor_of(a.tensor_offsets, a.tensors, e) : 0;
  for (int i = 0; i < 4 && e + i < a.elements; ++i) {
    while (a.scaling && a.tensor_offsets[t + 1] <= e + i) ++t;
    const float scaling = a.scaling ? a.scaling[t] : 1.0f;
    x.at[i] = (b1 * x.at[i] + one_minus_b1 * g.at[i]) * scaling;
  }
  return x;
}

// The same where all four elements are real and share one scaling.
template <bool momentum>
__device__ Quad local_value_in_tensor(const WorkerPhase& a, std::size_t e, float b1,
                                      float one_minus_b1, float scaling) {
  const float4 v = load4(a.x, e);
  Quad x{{v.x, v.y, v.z, v.w}};
  if (momentum) {
    const float4 w = load4(a.gradient, e);
    const Quad g{{w.x, w.y, w.z, w.w}};
    for (int i = 0; i < 4; ++i) x.at[i] = (b1 * x.at[i] + one_minus_b1 * g.at[i]) * scaling;
  }
  return x;
}

// c = x + owed error, stored; padding that does not count becomes 0.
__device__ Quad compensate(Quad x, Quad c, float old_scale, std::size_t e, std::size_t counted) {
  for (int i = 0; i < 4; ++i) {
    x.at[i] = e + i < counted ? owed(c.at[i], old_scale) + x.at[i] : 0.0f;
  }
  return x;
}

template <bool momentum>
__global__ void __launch_bounds__(threads) worker_kernel(WorkerPhase a) {
  const float b1 = static_cast<float>(a.beta1), one_minus_b1 = static_cast<float>(1 - a.beta1);
  const float old_scale = *a.error.scale;
  const std::size_t lane = threadIdx.x % 32;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * tile;
  double sum = 0;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * tile;
       begin < a.padded; begin += stride) {
    float scaling = 1.0f;
    bool simple = begin + tile <= a.elements && begin + tile <= a.counted;
    if (momentum && simple && a.scaling) {
      const int t = tensor_of(a.tensor_offsets, a.tensors, begin);
      scaling = a.scaling[t];
      simple = begin + tile <= a.tensor_offsets[t + 1];
    }
    Quad c[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + half * 128 + 4 * lane;
      const Quad before = load_quad(a.error.compensated, e, a.padded);
      const Quad x = simple ? local_value_in_tensor<momentum>(a, e, b1, one_minus_b1, scaling)
                            : local_value(a, e, b1, one_minus_b1);
      c[half] = compensate(x, before, old_scale, e, a.counted);
    }
    for (int half = 0; half < 2; ++half) {
      store_quad(a.error.compensated, begin + half * 128 + 4 * lane, a.padded, c[half]);
      sum += square_sum(c[half]);
    }
    store_signs(a.signs, begin, a.padded, nibble_of(c[0]), nibble_of(c[1]));
  }
  const double total = block_sum(sum);
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

__global__ void __launch_bounds__(threads) server_kernel(ServerPhase a) {
  const float share = static_cast<float>(1.0 / a.ranks);
  const float old_scale = *a.error.scale;
  const std::size_t lane = threadIdx.x % 32;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * tile;
  double sum = 0;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * tile;
       begin < a.chunk; begin += stride) {
    Quad c[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + half * 128 + 4 * lane;
      Quad mean{};
#pragma unroll 4
      for (int rank = 0; e < a.chunk && rank < a.ranks; ++rank) {
        const unsigned nibble = nibble_at(a.received + rank * (a.chunk / 8), e);
        const float scale = a.worker_scales[rank] * share;
        for (int i = 0; i < 4; ++i) mean.at[i] += with_sign(scale, nibble & (8u >> i));
      }
      const Quad before = load_quad(a.error.compensated, e, a.chunk);
      c[half] = compensate(mean, before, old_scale, e, a.counted);
      store_quad(a.error.compensated, e, a.chunk, c[half]);
      sum += square_sum(c[half]);
    }
    store_signs(a.signs, begin, a.chunk, nibble_of(c[0]), nibble_of(c[1]));
  }
  const double total = block_sum(sum);
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

// Second stage: *scale = sqrt(sum of slots / counted), 0 when nothing counts.
__global__ void finish_scale(const double* slots, unsigned count, std::size_t counted,
                             float* scale) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += slots[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    *scale = counted == 0 ? 0.0f
                          : static_cast<float>(sqrt(sum / static_cast<double>(counted)));
  }
}

__global__ void __launch_bounds__(threads) decode_kernel(Decode a) {
  const std::size_t lane = threadIdx.x % 32;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * tile;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * tile;
       begin < a.elements; begin += stride) {
    const std::size_t first = begin / a.chunk;
    const std::size_t next = (first + 1) * a.chunk;
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + half * 128 + 4 * lane;
      if (e >= a.elements) continue;
      const float scale = a.scales[e < next ? first : e / a.chunk];
      const unsigned nibble = nibble_at(a.signs, e);
      Quad x;
      for (int i = 0; i < 4; ++i) x.at[i] = with_sign(scale, nibble & (8u >> i));
      if (a.mask) {
        const Quad mask = load_quad(a.mask, e, a.elements);
        for (int i = 0; i < 4; ++i) x.at[i] *= mask.at[i];
      }
      store_quad(a.x, e, a.elements, x);
    }
  }
}

__global__ void __launch_bounds__(threads)
    pack_kernel(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule) {
  const std::size_t lane = threadIdx.x % 32;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * tile;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * tile;
       begin < elements; begin += stride) {
    unsigned nibbles[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + half * 128 + 4 * lane;
      const Quad q = load_quad(x, e, elements);
      for (int i = 0; i < 4; ++i) {
        const bool plus = rule == SignRule::sign_bit ? !signbit(q.at[i]) : positive(q.at[i]);
        nibbles[half] |= plus && e + i < elements ? 8u >> i : 0u;
      }
    }
    store_signs(signs, begin, elements, nibbles[0], nibbles[1]);
  }
}

__global__ void __launch_bounds__(threads)
    unpack_kernel(const std::uint8_t* signs, float* x, std::size_t elements) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads * 4;
  for (std::size_t e = (blockIdx.x * std::size_t{threads} + threadIdx.x) * 4; e < elements;
       e += stride) {
    const unsigned nibble = nibble_at(signs, e);
    Quad q;
    for (int i = 0; i < 4; ++i) q.at[i] = with_sign(1.0f, nibble & (8u >> i));
    store_quad(x, e, elements, q);
  }
}

__global__ void __launch_bounds__(threads)
    mask_kernel(float* x, const float* mask, std::size_t elements) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads * 4;
  for (std::size_t e = (blockIdx.x * std::size_t{threads} + threadIdx.x) * 4; e < elements;
       e += stride) {
    Quad q = load_quad(x, e, elements);
    const Quad factor = load_quad(mask, e, elements);
    for (int i = 0; i < 4; ++i) q.at[i] *= factor.at[i];
    store_quad(x, e, elements, q);
  }
}

__global__ void __launch_bounds__(threads)
    resolve_kernel(ErrorMemory memory, float* error, std::size_t elements) {
  const float scale = *memory.scale;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * threads * 4;
  for (std::size_t e = (blockIdx.x * std::size_t{threads} + threadIdx.x) * 4; e < elements;
       e += stride) {
    Quad q = load_quad(memory.compensated, e, elements);
    for (int i = 0; i < 4; ++i) q.at[i] = owed(q.at[i], scale);
    store_quad(error, e, elements, q);
  }
}

std::size_t tiles_of(std::size_t elements) { return (elements + tile * warps - 1) / (tile * warps); }

}  // namespace

cudaError_t worker_phase(const WorkerPhase& phase, cudaStream_t stream) {
  WorkerPhase a = phase;
  if (a.x_elements == 0) a.x_elements = a.elements;
  if (const auto e = check_aligned(a.x, a.gradient, a.error.compensated)) return e;
  const auto kernel = a.gradient ? worker_kernel<true> : worker_kernel<false>;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, tiles_of(a.padded), blocks)) return e;
  kernel<<<blocks, threads, 0, stream>>>(a);
  finish_scale<<<1, 1024, 0, stream>>>(a.workspace, blocks, a.counted, a.error.scale);
  return cudaGetLastError();
}

cudaError_t server_phase(const ServerPhase& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.error.compensated)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(server_kernel, tiles_of(a.chunk), blocks)) return e;
  server_kernel<<<blocks, threads, 0, stream>>>(a);
  finish_scale<<<1, 1024, 0, stream>>>(a.workspace, blocks, a.counted, a.error.scale);
  return cudaGetLastError();
}

cudaError_t decode(const Decode& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.x, a.mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(decode_kernel, tiles_of(a.elements), blocks)) return e;
  decode_kernel<<<blocks, threads, 0, stream>>>(a);
  return cudaGetLastError();
}

cudaError_t pack_signs(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule,
                       cudaStream_t stream) {
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(pack_kernel, tiles_of(elements), blocks)) return e;
  pack_kernel<<<blocks, threads, 0, stream>>>(x, signs, elements, rule);
  return cudaGetLastError();
}

cudaError_t unpack_signs(const std::uint8_t* signs, float* x, std::size_t elements,
                         cudaStream_t stream) {
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(unpack_kernel, quads_of(elements), blocks)) return e;
  unpack_kernel<<<blocks, threads, 0, stream>>>(signs, x, elements);
  return cudaGetLastError();
}

cudaError_t apply_mask(float* x, const float* mask, std::size_t elements, cudaStream_t stream) {
  if (const auto e = check_aligned(x, mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(mask_kernel, quads_of(elements), blocks)) return e;
  mask_kernel<<<blocks, threads, 0, stream>>>(x, mask, elements);
  return cudaGetLastError();
}

cudaError_t resolve_errors(const ErrorMemory& memory, float* error, std::size_t elements,
                           cudaStream_t stream) {
  if (const auto e = check_aligned(memory.compensated, error)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(resolve_kernel, quads_of(elements), blocks)) return e;
  resolve_kernel<<<blocks, threads, 0, stream>>>(memory, error, elements);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
