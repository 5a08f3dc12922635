#include "kernels/cuda/sparse.h"

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

constexpr int digits = 16;  // values of four bits
constexpr int passes = 8;   // 32 bits, of which the first is never set

// Magnitudes in the order of their bits; a NaN is on top.
__device__ unsigned magnitude_key(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

// Where the search stands, at the end of the workspace: the bits of the k-th key known so far, how
// many of those that share them are to be taken, and how many lie above.
struct Search {
  double prefix, remaining, above, unused;
};

__global__ void __launch_bounds__(threads)
    add_owed_kernel(const float* x, float* owed, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    const Quad add = load_quad(x, e, limit);
    Quad c = load_quad(owed, e, limit);
    for (int i = 0; i < 4; ++i) c.at[i] += add.at[i];
    store_quad(owed, e, limit, c);
  });
}

__global__ void begin_kernel(Search* search, double kept) {
  if (threadIdx.x == 0) *search = {0, kept, 0, 0};
}

// How many keys with the known prefix have which next digit.
__global__ void __launch_bounds__(threads)
    count_kernel(const float* c, std::size_t elements, int shift, const Search* search,
                 double* slots) {
  const unsigned prefix = static_cast<unsigned>(search->prefix);
  const unsigned known = shift == 28 ? 0u : 0xffffffffu << (shift + 4);
  unsigned counts[digits] = {};
  const auto load = [&](std::size_t e, std::size_t limit) { return load_quad(c, e, limit); };
  for_each_loaded_quad(elements, load, [&](std::size_t e, std::size_t limit, const Quad& q) {
    for (int i = 0; i < 4; ++i) {
      const unsigned key = magnitude_key(q.at[i]);
      const bool counts_here = e + i < limit && ((key ^ prefix) & known) == 0;
      const unsigned digit = key >> shift & (digits - 1);
      // All sixteen are compared, so that the counters stay in registers.
      for (unsigned d = 0; d < digits; ++d) counts[d] += counts_here && digit == d;
    }
  });
  for (int d = 0; d < digits; ++d) {
    const double total = block_sum(counts[d]);
    if (threadIdx.x == 0) slots[d * gridDim.x + blockIdx.x] = total;
  }
}

// One block: the digit in which the remaining-th from the top lies.
__global__ void __launch_bounds__(finish_threads)
    choose_kernel(const double* slots, unsigned blocks, int shift, Search* search) {
  double total[digits];
  for (int d = 0; d < digits; ++d) {
    double sum = 0;
    for (unsigned b = threadIdx.x; b < blocks; b += blockDim.x) sum += slots[d * blocks + b];
    total[d] = block_sum(sum);
  }
  if (threadIdx.x != 0) return;
  int d = digits - 1;
  while (d > 0 && total[d] < search->remaining) {
    search->remaining -= total[d];
    search->above += total[d];
    --d;
  }
  search->prefix += static_cast<double>(static_cast<unsigned>(d) << shift);
}

// The stretch of elements that a block counts and then writes out, in whole tiles of `threads`.
struct Stretch {
  std::size_t begin, end;
};
__device__ Stretch stretch_of(std::size_t elements) {
  const std::size_t tiles = (elements + threads - 1) / threads;
  const std::size_t each = (tiles + gridDim.x - 1) / gridDim.x * threads;
  const std::size_t begin = min(blockIdx.x * each, elements);
  return {begin, min(begin + each, elements)};
}

// How many elements of the stretch lie above the k-th key, and how many are equal to it.
__global__ void __launch_bounds__(threads)
    count_taken_kernel(const float* c, std::size_t elements, const Search* search, double* slots) {
  const unsigned kth = static_cast<unsigned>(search->prefix);
  const Stretch stretch = stretch_of(elements);
  double above = 0, equal = 0;
  for (std::size_t e = stretch.begin + threadIdx.x; e < stretch.end; e += threads) {
    const unsigned key = magnitude_key(c[e]);
    above += key > kth;
    equal += key == kth;
  }
  above = block_sum(above);
  equal = block_sum(equal);
  if (threadIdx.x == 0) {
    slots[blockIdx.x] = above;
    slots[gridDim.x + blockIdx.x] = equal;
  }
}

// The sum over the threads before this one, and over all. Every thread of the block must call it.
__device__ unsigned block_prefix(unsigned x, unsigned& total) {
  __shared__ unsigned per_warp[warps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = x;
  for (int offset = 1; offset < 32; offset *= 2) {
    const unsigned below = __shfl_up_sync(all_lanes, sum, offset);
    if (lane >= offset) sum += below;
  }
  __syncthreads();
  if (lane == 31) per_warp[warp] = sum;
  __syncthreads();
  unsigned before = 0;
  total = 0;
  for (int w = 0; w < warps; ++w) {
    if (w < warp) before += per_warp[w];
    total += per_warp[w];
  }
  return before + sum - x;
}

// Writes out what is taken of the stretch: all above the k-th key, and equal ones while there are
// some to be taken. An equal one is at place (equal ones before it) in their order.
__global__ void __launch_bounds__(threads)
    take_kernel(float* c, std::size_t elements, const Search* search, const double* slots,
                SparseMessage message) {
  const unsigned kth = static_cast<unsigned>(search->prefix);
  const double wanted = search->remaining;
  const Stretch stretch = stretch_of(elements);
  double above = 0, equal = 0;
  for (unsigned b = threadIdx.x; b < blockIdx.x; b += threads) {
    above += slots[b];
    equal += slots[gridDim.x + b];
  }
  __shared__ double before[2];
  above = block_sum(above);
  equal = block_sum(equal);
  if (threadIdx.x == 0) {
    before[0] = above;
    before[1] = equal;
  }
  __syncthreads();
  above = before[0];
  equal = before[1];
  for (std::size_t tile = stretch.begin; tile < stretch.end; tile += threads) {
    const std::size_t e = tile + threadIdx.x;
    const float value = e < stretch.end ? c[e] : 0.0f;
    const unsigned key = magnitude_key(value);
    const bool is_above = e < stretch.end && key > kth, is_equal = e < stretch.end && key == kth;
    unsigned aboves, equals;
    const double my_above = above + block_prefix(is_above, aboves);
    const double my_equal = equal + block_prefix(is_equal, equals);
    if (is_above || (is_equal && my_equal < wanted)) {
      const std::size_t at = static_cast<std::size_t>(my_above + min(my_equal, wanted));
      message.indices[at] = static_cast<std::uint32_t>(e);
      message.values[at] = value;
      c[e] = 0;
    }
    above += aboves;
    equal += equals;
  }
}

__device__ std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__global__ void __launch_bounds__(threads)
    random_kernel(float* c, std::size_t elements, std::uint64_t seed, SparseMessage message) {
  const std::size_t k = message.kept;
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < k;
       i += static_cast<std::size_t>(gridDim.x) * threads) {
    const std::size_t begin = i * elements / k, end = (i + 1) * elements / k;
    const std::size_t e = begin + mixed(mixed(seed) ^ i) % (end - begin);
    message.indices[i] = static_cast<std::uint32_t>(e);
    message.values[i] = c[e];
    c[e] = 0;
  }
}

__global__ void __launch_bounds__(threads)
    add_at_kernel(float* x, SparseMessage message, float share) {
  for (std::size_t i = blockIdx.x * std::size_t{threads} + threadIdx.x; i < message.kept;
       i += static_cast<std::size_t>(gridDim.x) * threads) {
    x[message.indices[i]] += share * message.values[i];
  }
}

std::size_t blocks_of(std::size_t items) { return (items + threads - 1) / threads; }

}  // namespace

cudaError_t add_owed(const float* x, float* owed, std::size_t elements, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  if (const auto e = check_aligned(x, owed)) return e;
  unsigned blocks = 0;
  if (const auto e = grid_size(add_owed_kernel, quads_of(elements), blocks)) return e;
  launch(add_owed_kernel, blocks, threads, stream, x, owed, elements);
  return cudaGetLastError();
}

cudaError_t top_k(float* c, std::size_t elements, const SparseMessage& message, double* workspace,
                  cudaStream_t stream) {
  if (message.kept < 1 || message.kept > elements) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(c)) return e;
  Search* search = reinterpret_cast<Search*>(workspace + digits * std::size_t{reduction_slots});
  launch(begin_kernel, 1, 32, stream, search, static_cast<double>(message.kept));
  unsigned blocks = 0;
  if (const auto e = grid_size(count_kernel, quads_of(elements), blocks)) return e;
  for (int pass = 0; pass < passes; ++pass) {
    const int shift = 28 - 4 * pass;
    launch(count_kernel, blocks, threads, stream, c, elements, shift, search, workspace);
    launch(choose_kernel, 1, finish_threads, stream, workspace, blocks, shift, search);
  }
  if (const auto e = grid_size(take_kernel, blocks_of(elements), blocks)) return e;
  launch(count_taken_kernel, blocks, threads, stream, c, elements, search, workspace);
  launch(take_kernel, blocks, threads, stream, c, elements, search, workspace, message);
  return cudaGetLastError();
}

cudaError_t random_k(float* c, std::size_t elements, std::uint64_t seed,
                     const SparseMessage& message, cudaStream_t stream) {
  if (message.kept < 1 || message.kept > elements) return cudaErrorInvalidValue;
  unsigned blocks = 0;
  if (const auto e = grid_size(random_kernel, blocks_of(message.kept), blocks)) return e;
  launch(random_kernel, blocks, threads, stream, c, elements, seed, message);
  return cudaGetLastError();
}

cudaError_t add_at(float* x, const SparseMessage& message, float share, cudaStream_t stream) {
  if (message.kept == 0) return cudaSuccess;
  unsigned blocks = 0;
  if (const auto e = grid_size(add_at_kernel, blocks_of(message.kept), blocks)) return e;
  launch(add_at_kernel, blocks, threads, stream, x, message, share);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
