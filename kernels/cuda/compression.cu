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

// Calls f(begin, whole) for the tiles of this warp; `whole` says that the tile ends inside n.
template <typename F>
__device__ void for_each_tile(std::size_t n, F f) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * tile;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * tile; begin < n;
       begin += stride) {
    f(begin, begin + tile <= n);
  }
}
// Where this lane's quad of either half begins, in the tile.
__device__ std::size_t lane_offset(int half) { return half * 128 + 4 * (threadIdx.x % 32); }

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

// c = x + owed error; padding that does not count becomes 0.
__device__ Quad compensate(Quad x, const Quad& c, float old_scale, std::size_t e,
                           std::size_t counted) {
  for (int i = 0; i < 4; ++i) {
    x.at[i] = e + i < counted ? owed(c.at[i], old_scale) + x.at[i] : 0.0f;
  }
  return x;
}

template <bool momentum>
__global__ void __launch_bounds__(threads) worker_kernel(WorkerPhase a) {
  const float b1 = static_cast<float>(a.beta1), one_minus_b1 = static_cast<float>(1 - a.beta1);
  const float old_scale = *a.error.scale;
  double sum = 0;
  for_each_tile(a.padded, [&](std::size_t begin, bool) {
    // The usual tile lies inside one tensor: all its loads are issued before the first is used.
    const std::size_t end = begin + tile;
    float scaling = 1.0f;
    bool simple = end <= a.elements && end <= a.counted;
    if (momentum && simple && a.scaling) {
      const int t = tensor_of(a.tensor_offsets, a.tensors, begin);
      scaling = a.scaling[t];
      simple = end <= a.tensor_offsets[t + 1];
    }
    Quad c[2] = {};
    if (simple) {
      Quad x[2], g[2] = {};
      for (int half = 0; half < 2; ++half) {
        const std::size_t e = begin + lane_offset(half);
        c[half] = load_quad(a.error.compensated, e, e + 4);
        x[half] = load_quad(a.x, e, e + 4);
        if (momentum) g[half] = load_quad(a.gradient, e, e + 4);
      }
      for (int half = 0; half < 2; ++half) {
        for (int i = 0; momentum && i < 4; ++i) {
          x[half].at[i] = (b1 * x[half].at[i] + one_minus_b1 * g[half].at[i]) * scaling;
        }
        c[half] = compensate(x[half], c[half], old_scale, 0, 4);
        const std::size_t e = begin + lane_offset(half);
        store_quad(a.error.compensated, e, e + 4, c[half]);
      }
    } else {
      for (int half = 0; half < 2; ++half) {
        const std::size_t e = begin + lane_offset(half);
        const Quad before = load_quad(a.error.compensated, e, a.padded);
        const Quad x = local_value(a, e, b1, one_minus_b1);
        c[half] = compensate(x, before, old_scale, e, a.counted);
        store_quad(a.error.compensated, e, a.padded, c[half]);
      }
    }
    sum += square_sum(c[0]) + square_sum(c[1]);
    store_signs(a.signs, begin, a.padded, nibble_of(c[0]), nibble_of(c[1]));
  });
  const double total = block_sum(sum);
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

__global__ void __launch_bounds__(threads) server_kernel(ServerPhase a) {
  const float share = static_cast<float>(1.0 / a.ranks);
  const float old_scale = *a.error.scale;
  double sum = 0;
  for_each_tile(a.chunk, [&](std::size_t begin, bool whole) {
    Quad c[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      if (!whole && e >= a.chunk) continue;
      const Quad before = load_quad(a.error.compensated, e, e + 4);
      Quad mean{};
#pragma unroll 4
      for (int rank = 0; rank < a.ranks; ++rank) {
        const unsigned nibble = nibble_at(a.received + rank * (a.chunk / 8), e);
        const float scale = a.worker_scales[rank] * share;
        for (int i = 0; i < 4; ++i) mean.at[i] += with_sign(scale, nibble & (8u >> i));
      }
      c[half] = compensate(mean, before, old_scale, e, a.counted);
      store_quad(a.error.compensated, e, e + 4, c[half]);
    }
    sum += square_sum(c[0]) + square_sum(c[1]);
    store_signs(a.signs, begin, a.chunk, nibble_of(c[0]), nibble_of(c[1]));
  });
  const double total = block_sum(sum);
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

// Second stage: *scale = sqrt(sum of slots / counted), 0 when nothing counts.
__global__ void __launch_bounds__(finish_threads) finish_scale(const double* slots, unsigned count, std::size_t counted,
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
  for_each_tile(a.elements, [&](std::size_t begin, bool whole) {
    const std::size_t first = begin / a.chunk;
    const std::size_t next = (first + 1) * a.chunk;
    const auto quad = [&](std::size_t e, std::size_t limit) {
      // Chunks begin at multiples of 8, so a quad lies in one of them.
      const float scale = a.scales[e < next ? first : e / a.chunk];
      const unsigned nibble = nibble_at(a.signs, e);
      Quad x;
      for (int i = 0; i < 4; ++i) x.at[i] = with_sign(scale, nibble & (8u >> i));
      if (a.mask) {
        const Quad mask = load_quad(a.mask, e, limit);
        for (int i = 0; i < 4; ++i) x.at[i] *= mask.at[i];
      }
      store_quad(a.x, e, limit, x);
    };
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      if (whole) quad(e, e + 4);
      else if (e < a.elements) quad(e, a.elements);
    }
  });
}

__global__ void __launch_bounds__(threads)
    pack_kernel(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule) {
  for_each_tile(elements, [&](std::size_t begin, bool whole) {
    unsigned nibbles[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      const Quad q = whole ? load_quad(x, e, e + 4) : load_quad(x, e, elements);
      for (int i = 0; i < 4; ++i) {
        const bool plus = rule == SignRule::sign_bit ? !signbit(q.at[i]) : positive(q.at[i]);
        nibbles[half] |= plus && e + i < elements ? 8u >> i : 0u;
      }
    }
    store_signs(signs, begin, elements, nibbles[0], nibbles[1]);
  });
}

__global__ void __launch_bounds__(threads)
    unpack_kernel(const std::uint8_t* signs, float* x, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    const unsigned nibble = nibble_at(signs, e);
    Quad q;
    for (int i = 0; i < 4; ++i) q.at[i] = with_sign(1.0f, nibble & (8u >> i));
    store_quad(x, e, limit, q);
  });
}

__global__ void __launch_bounds__(threads)
    mask_kernel(float* x, const float* mask, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad q = load_quad(x, e, limit);
    const Quad factor = load_quad(mask, e, limit);
    for (int i = 0; i < 4; ++i) q.at[i] *= factor.at[i];
    store_quad(x, e, limit, q);
  });
}

__global__ void __launch_bounds__(threads)
    resolve_kernel(ErrorMemory memory, float* error, std::size_t elements) {
  const float scale = *memory.scale;
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    Quad q = load_quad(memory.compensated, e, limit);
    for (int i = 0; i < 4; ++i) q.at[i] = owed(q.at[i], scale);
    store_quad(error, e, limit, q);
  });
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
  launch(kernel, blocks, threads, stream, a);
  launch(finish_scale, 1, finish_threads, stream, a.workspace, blocks, a.counted, a.error.scale);
  return cudaGetLastError();
}

cudaError_t server_phase(const ServerPhase& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.error.compensated)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(server_kernel, tiles_of(a.chunk), blocks)) return e;
  launch(server_kernel, blocks, threads, stream, a);
  launch(finish_scale, 1, finish_threads, stream, a.workspace, blocks, a.counted, a.error.scale);
  return cudaGetLastError();
}

cudaError_t decode(const Decode& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.x, a.mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(decode_kernel, tiles_of(a.elements), blocks)) return e;
  launch(decode_kernel, blocks, threads, stream, a);
  return cudaGetLastError();
}

cudaError_t pack_signs(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule,
                       cudaStream_t stream) {
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(pack_kernel, tiles_of(elements), blocks)) return e;
  launch(pack_kernel, blocks, threads, stream, x, signs, elements, rule);
  return cudaGetLastError();
}

cudaError_t unpack_signs(const std::uint8_t* signs, float* x, std::size_t elements,
                         cudaStream_t stream) {
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(unpack_kernel, quads_of(elements), blocks)) return e;
  launch(unpack_kernel, blocks, threads, stream, signs, x, elements);
  return cudaGetLastError();
}

cudaError_t apply_mask(float* x, const float* mask, std::size_t elements, cudaStream_t stream) {
  if (const auto e = check_aligned(x, mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(mask_kernel, quads_of(elements), blocks)) return e;
  launch(mask_kernel, blocks, threads, stream, x, mask, elements);
  return cudaGetLastError();
}

cudaError_t resolve_errors(const ErrorMemory& memory, float* error, std::size_t elements,
                           cudaStream_t stream) {
  if (const auto e = check_aligned(memory.compensated, error)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(resolve_kernel, quads_of(elements), blocks)) return e;
  launch(resolve_kernel, blocks, threads, stream, memory, error, elements);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
