#include "kernels/cuda/compression.h"

#include "kernels/cuda/gradient.cuh"

namespace lambcast::cuda {
namespace {

// A warp works on tiles of 256 elements. Lane l owns the quads at 4 l and at 128 + 4 l, so that
// every float access of the warp is one contiguous run. Lanes 2 j and 2 j + 1 own the halves of
// byte j of each 128 elements, swap one nibble and write one byte each.
constexpr std::size_t warp_tile = 256;

__device__ unsigned nibble_of(const Quad& c) {
  unsigned nibble = 0;
  for (int i = 0; i < 4; ++i) nibble |= positive(c.at[i]) ? 8u >> i : 0u;
  return nibble;
}

// Writes the signs of the tile at `begin`, without bounds checks if it is whole. All lanes of the
// warp must call it.
__device__ void store_signs(std::uint8_t* signs, std::size_t begin, std::size_t end, bool whole,
                            unsigned first, unsigned second) {
  const unsigned lane = threadIdx.x % 32;
  const bool even = lane % 2 == 0;
  const unsigned other = __shfl_xor_sync(all_lanes, even ? second : first, 1);
  const unsigned byte = even ? first << 4 | other : other << 4 | second;
  const std::size_t at = begin / 8 + (even ? 0 : 16) + lane / 2;
  if (whole || at * 8 < end) signs[at] = static_cast<std::uint8_t>(byte);
}

// Calls f(begin, whole) for the tiles of this warp below n; `whole` means that the tile ends within
// `regular`. It is a constant for the compiler in either call, which removes the bounds checks from
// the common case.
template <typename F>
__device__ void for_each_tile(std::size_t n, std::size_t regular, F f) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * warps * warp_tile;
  for (std::size_t begin = (blockIdx.x * std::size_t{warps} + threadIdx.x / 32) * warp_tile;
       begin < n; begin += stride) {
    if (begin + warp_tile <= regular)
      f(begin, true);
    else
      f(begin, false);
  }
}
// Returns the start of this lane's quad of either half, within the tile.
__device__ std::size_t lane_offset(int half) { return half * 128 + 4 * (threadIdx.x % 32); }

// Returns the tensor that contains element e < offsets[tensors]. Empty tensors are skipped.
__device__ int tensor_of(const std::size_t* offsets, int tensors, std::size_t e) {
  int low = 0, high = tensors;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (offsets[middle] <= e)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Replaces x by the momentum after this step for elements with a gradient, which are those below
// a.elements. `end` is the end of the warp's tile.
__device__ void update_momentum(const WorkerPhase& a, std::size_t begin, std::size_t end,
                                Quad (&x)[2], const Quad (&g)[2]) {
  const float b1 = static_cast<float>(a.beta1), one_minus_b1 = static_cast<float>(1 - a.beta1);
  if (begin >= a.elements) return;
  int t = a.scaling ? tensor_of(a.tensor_offsets, a.tensors, begin) : 0;
  const bool one_tensor = !a.scaling || end <= a.tensor_offsets[t + 1];
  const float scaling = a.scaling ? a.scaling[t] : 1.0f;
  if (one_tensor && end <= a.elements) {
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) {
        x[half].at[i] = (b1 * x[half].at[i] + one_minus_b1 * g[half].at[i]) * scaling;
      }
    }
    return;
  }
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < 4; ++i) {
      const std::size_t e = begin + lane_offset(half) + i;
      if (e >= a.elements) return;
      while (a.scaling && a.tensor_offsets[t + 1] <= e) ++t;
      const float own = a.scaling ? a.scaling[t] : 1.0f;
      x[half].at[i] = (b1 * x[half].at[i] + one_minus_b1 * g[half].at[i]) * own;
    }
  }
}

// Returns x plus the error feedback for the first `counted` of four elements; the others become 0.
__device__ Quad compensate(Quad x, const Quad& c, float old_scale, int counted) {
  for (int i = 0; i < 4; ++i) {
    x.at[i] = i < counted ? owed(c.at[i], old_scale) + x.at[i] : 0.0f;
  }
  return x;
}

// Compresses a buffer or a momentum. Without a momentum, `gradient` is the buffer.
template <bool momentum, typename T>
__global__ void __launch_bounds__(threads)
    worker_kernel(WorkerPhase a, TypedGradient<T> gradient) {
  const float old_scale = *a.error.scale;
  const GradientReader<T> reader(gradient);
  RunningSum sum;
  for_each_tile(a.padded, min(a.elements, a.counted), [&](std::size_t begin, bool whole) {
    Quad c[2], x[2] = {}, g[2];
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      c[half] = load_quad(a.error.compensated, e, whole ? e + 4 : a.padded);
      if (momentum) x[half] = load_quad(a.x, e, whole ? e + 4 : a.x_elements);
      g[half] = reader.load(e, whole ? e + 4 : momentum ? a.elements : a.x_elements);
    }
    for (int half = 0; half < 2; ++half) g[half] = reader.scaled(g[half]);
    if (momentum) update_momentum(a, begin, begin + warp_tile, x, g);
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      const Quad& sent = momentum ? x[half] : g[half];
      c[half] = compensate(sent, c[half], old_scale, whole ? 4 : quad_part(e, a.counted));
      store_quad(a.error.compensated, e, whole ? e + 4 : a.padded, c[half]);
    }
    add_squares(sum, c[0]);
    add_squares(sum, c[1]);
    store_signs(a.signs, begin, a.padded, whole, nibble_of(c[0]), nibble_of(c[1]));
  });
  const double total = block_sum(sum.total());
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

// Moves bit b of byte r to bit r of the nibble at 8 (b % 4) + 4 (b / 4), so that the bits of four
// ranks for one element are adjacent. It swaps bits of the position twice: 4 with 1, and 3 with 0.
__device__ unsigned side_by_side(unsigned bytes) {
  const unsigned far = (bytes ^ (bytes >> 14)) & 0x0000ccccu;
  bytes ^= far ^ (far << 14);
  const unsigned near = (bytes ^ (bytes >> 7)) & 0x00aa00aau;
  return bytes ^ near ^ (near << 7);
}

// Returns the signed sum of the scales for each of the 16 votes that four ranks from `first` on can
// have: vote v in lanes v and 16 + v. Ranks that do not exist have weight 0.
__device__ float vote_sum(const ServerPhase& a, float share, int first) {
  const unsigned lane = threadIdx.x % 32;
  float sum = 0;
  for (int r = first; r < first + 4; ++r) {
    const float weight = r < a.ranks ? a.worker_scales[r] * share : 0.0f;
    sum += with_sign(weight, lane >> (r - first) & 1);
  }
  return sum;
}

// Adds the votes of four ranks to this lane's two quads. `bytes` are their signs of eight elements,
// from 8 l on for lane l; a shuffle looks up the `sum` of each vote.
__device__ void add_votes(unsigned bytes, float sum, Quad (&mean)[2]) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned votes = side_by_side(bytes);
  for (int half = 0; half < 2; ++half) {
    const unsigned mine = __shfl_sync(all_lanes, votes, half * 16 + lane / 2) >> (lane % 2 ? 0 : 4);
    for (int i = 0; i < 4; ++i) {
      mean[half].at[i] += __shfl_sync(all_lanes, sum, mine >> (24 - 8 * i), 16);
    }
  }
}

// Reads the signs of `together` ranks at once: 8, 16 or 32. Each thread has that many bytes in
// flight, and 32 bytes of errors while it reads the first signs.
template <int together>
__global__ void __launch_bounds__(threads) server_kernel(ServerPhase a) {
  const float share = static_cast<float>(1.0 / a.ranks);
  const float old_scale = *a.error.scale;
  const std::size_t chunk_bytes = a.chunk / 8;
  const int lane = threadIdx.x % 32;
  const float first_sums[2] = {vote_sum(a, share, 0), vote_sum(a, share, 4)};
  RunningSum sum;
  for_each_tile(a.chunk, a.counted, [&](std::size_t begin, bool whole) {
    Quad c[2], mean[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      c[half] = load_quad(a.error.compensated, e, whole ? e + 4 : a.chunk);
    }
    // All loads of signs are in flight together, with no condition between them. In place of a rank
    // that does not exist, the last one is read again with weight 0. A lane without elements reads
    // the last byte, and its result is not used.
    const std::size_t mine = begin / 8 + lane;
    const std::uint8_t* signs = a.received + (whole ? mine : min(mine, chunk_bytes - 1));
    for (int first = 0; first < a.ranks; first += together) {
      unsigned one[together], bytes[together / 4] = {};
      const auto read_signs = [&](bool all) {
#pragma unroll
        for (int r = 0; r < together; ++r) {
          one[r] = __ldcs(signs);
          if (all || first + r + 1 < a.ranks) signs += chunk_bytes;
        }
      };
      if (first + together <= a.ranks)
        read_signs(true);
      else
        read_signs(false);
#pragma unroll
      for (int r = 0; r < together; ++r) bytes[r / 4] |= one[r] << (8 * (r % 4));
#pragma unroll
      for (int four = 0; four < together / 4; ++four) {
        if (four > 1 && first + 4 * four >= a.ranks) break;
        const bool known = first == 0 && four < 2;
        const float vote = known ? first_sums[four % 2] : vote_sum(a, share, first + 4 * four);
        add_votes(bytes[four], vote, mean);
      }
    }
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      c[half] = compensate(mean[half], c[half], old_scale, whole ? 4 : quad_part(e, a.counted));
      store_quad(a.error.compensated, e, whole ? e + 4 : a.chunk, c[half]);
    }
    add_squares(sum, c[0]);
    add_squares(sum, c[1]);
    store_signs(a.signs, begin, a.chunk, whole, nibble_of(c[0]), nibble_of(c[1]));
  });
  const double total = block_sum(sum.total());
  if (threadIdx.x == 0) a.workspace[blockIdx.x] = total;
}

// Second stage: *scale = sqrt(sum of slots / counted), or 0 if no element counts.
__global__ void __launch_bounds__(finish_threads)
    finish_scale(const double* slots, unsigned count, std::size_t counted, float* scale) {
  double sum = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum += slots[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) {
    *scale = counted == 0 ? 0.0f : static_cast<float>(sqrt(sum / static_cast<double>(counted)));
  }
}

__global__ void __launch_bounds__(threads) decode_kernel(Decode a) {
  // A warp's tiles are in increasing order, so its chunk is found by advancing.
  std::size_t chunk = 0, next = a.chunk;
  for_each_tile(a.elements, a.elements, [&](std::size_t begin, bool whole) {
    while (begin >= next) {
      ++chunk;
      next += a.chunk;
    }
    const std::size_t last = (a.elements - 1) & ~std::size_t{3};
    std::size_t at[2];
    unsigned nibbles[2];
    Quad x[2];
    for (int half = 0; half < 2; ++half) {
      at[half] = whole ? begin + lane_offset(half) : min(begin + lane_offset(half), last);
      nibbles[half] = nibble_at(a.signs, at[half]);
    }
    for (int half = 0; half < 2; ++half) {
      // Chunks begin at multiples of 8, so each quad is in one chunk.
      const float scale = a.scales[at[half] < next ? chunk : at[half] / a.chunk];
      for (int i = 0; i < 4; ++i) x[half].at[i] = with_sign(scale, nibbles[half] & (8u >> i));
    }
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half), limit = whole ? e + 4 : a.elements;
      if (a.mask) {
        const Quad mask = load_quad(a.mask, e, limit);
        for (int i = 0; i < 4; ++i) x[half].at[i] *= mask.at[i];
      }
      store_quad(a.x, e, limit, x[half]);
    }
  });
}

__global__ void __launch_bounds__(threads)
    pack_kernel(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule) {
  for_each_tile(elements, elements, [&](std::size_t begin, bool whole) {
    Quad q[2];
    unsigned nibbles[2] = {};
    for (int half = 0; half < 2; ++half) {
      const std::size_t e = begin + lane_offset(half);
      q[half] = load_quad(x, e, whole ? e + 4 : elements);
    }
    for (int half = 0; half < 2; ++half) {
      const int part = whole ? 4 : quad_part(begin + lane_offset(half), elements);
      for (int i = 0; i < 4; ++i) {
        const float v = q[half].at[i];
        const bool plus = rule == SignRule::sign_bit ? !signbit(v) : positive(v);
        nibbles[half] |= plus && i < part ? 8u >> i : 0u;
      }
    }
    store_signs(signs, begin, elements, whole, nibbles[0], nibbles[1]);
  });
}

__global__ void __launch_bounds__(threads)
    unpack_kernel(const std::uint8_t* signs, float* x, std::size_t elements) {
  const auto load = [&](std::size_t e, std::size_t) { return nibble_at(signs, e); };
  for_each_loaded_quad(elements, load, [&](std::size_t e, std::size_t limit, unsigned nibble) {
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

std::size_t warp_tiles_of(std::size_t elements) {
  return (elements + warp_tile * warps - 1) / (warp_tile * warps);
}

}  // namespace

cudaError_t worker_phase(const WorkerPhase& phase, cudaStream_t stream) {
  WorkerPhase a = phase;
  if (a.x_elements == 0) a.x_elements = a.elements;
  const bool momentum = a.x && a.gradient;
  return with_type(a.gradient ? a.gradient : a.x, [&]<typename T>(const TypedGradient<T>& g) {
    if (const auto e = check_aligned(a.x, g, a.error.compensated)) return e;
    const auto kernel = momentum ? worker_kernel<true, T> : worker_kernel<false, T>;
    unsigned blocks = 0;
    if (const auto e = grid_size(kernel, warp_tiles_of(a.padded), blocks)) return e;
    launch(kernel, blocks, threads, stream, a, g);
    launch(finish_scale, 1, finish_threads, stream, a.workspace, blocks, a.counted, a.error.scale);
    return cudaGetLastError();
  });
}

cudaError_t server_phase(const ServerPhase& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.error.compensated)) return e;
  unsigned blocks = 0;
  const auto kernel = a.ranks < 16   ? server_kernel<8>
                      : a.ranks < 32 ? server_kernel<16>
                                     : server_kernel<32>;
  if (const auto e = grid_size(kernel, warp_tiles_of(a.chunk), blocks)) return e;
  launch(kernel, blocks, threads, stream, a);
  launch(finish_scale, 1, finish_threads, stream, a.workspace, blocks, a.counted, a.error.scale);
  return cudaGetLastError();
}

cudaError_t decode(const Decode& a, cudaStream_t stream) {
  if (const auto e = check_aligned(a.x, a.mask)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(decode_kernel, warp_tiles_of(a.elements), blocks)) return e;
  launch(decode_kernel, blocks, threads, stream, a);
  return cudaGetLastError();
}

cudaError_t pack_signs(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule,
                       cudaStream_t stream) {
  if (const auto e = check_aligned(x)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(pack_kernel, warp_tiles_of(elements), blocks)) return e;
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
