#include "kernels/cuda/sparse.h"

#include <algorithm>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

// 31 bits of a magnitude in three digits: the first is the exponent with three bits of the
// mantissa.
constexpr int digits[] = {11, 10, 10};
constexpr unsigned most_bins = 1u << 11, last_bins = 1u << 10;
constexpr unsigned most_blocks = top_k_blocks;

// Magnitudes in the order of their bits; a NaN is on top.
__device__ unsigned magnitude_key(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

// Where the search stands: the bits of the k-th key known so far, and how many of those that share
// them are to be taken.
struct Search {
  unsigned prefix, remaining;
};

// The workspace. Sums of whole numbers are the same in whatever order atomics bring them.
struct TopK {
  Search* search;
  unsigned* totals;     // of the bins of a digit, zero between passes
  unsigned* above;      // of every block: elements above the k-th key, then in all blocks before
  unsigned* equal;      // and equal to it
  unsigned* per_block;  // the bins of the last digit of every block
};
TopK in_workspace(double* workspace) {
  unsigned* const totals = reinterpret_cast<unsigned*>(workspace + 1);
  unsigned* const above = totals + most_bins;
  return {reinterpret_cast<Search*>(workspace), totals, above, above + most_blocks,
          above + 2 * most_blocks};
}

__global__ void __launch_bounds__(threads)
    add_owed_kernel(const float* x, float* owed, std::size_t elements) {
  for_each_quad(elements, [&](std::size_t e, std::size_t limit) {
    const Quad add = load_quad(x, e, limit);
    Quad c = load_quad(owed, e, limit);
    for (int i = 0; i < 4; ++i) c.at[i] += add.at[i];
    store_quad(owed, e, limit, c);
  });
}

__global__ void __launch_bounds__(threads) begin_kernel(TopK work, unsigned kept) {
  for (unsigned d = threadIdx.x; d < most_bins; d += threads) work.totals[d] = 0;
  if (threadIdx.x == 0) *work.search = {0, kept};
}

// The stretch of elements that a block counts and then writes out, in whole tiles.
constexpr std::size_t tile = 4 * threads;
struct Stretch {
  std::size_t begin, end;
};
__device__ Stretch stretch_of(std::size_t elements) {
  const std::size_t tiles = (elements + tile - 1) / tile;
  const std::size_t each = (tiles + gridDim.x - 1) / gridDim.x * tile;
  const std::size_t begin = min(blockIdx.x * each, elements);
  return {begin, min(begin + each, elements)};
}

// Calls f for every element of the stretch, four loads of a thread in flight at once.
template <typename F>
__device__ void for_each_in(const float* c, const Stretch& stretch, F f) {
  constexpr int ahead = 4;
  const auto each = [&](std::size_t e, const Quad& q) {
    for (int i = 0; i < 4; ++i)
      if (e + i < stretch.end) f(q.at[i]);
  };
  std::size_t e = stretch.begin + 4 * threadIdx.x;
  for (; e + (ahead - 1) * tile + 4 <= stretch.end; e += ahead * tile) {
    Quad q[ahead];
    for (int i = 0; i < ahead; ++i) q[i] = load_quad(c, e + i * tile, stretch.end);
    for (int i = 0; i < ahead; ++i) each(e + i * tile, q[i]);
  }
  for (; e < stretch.end; e += tile) each(e, load_quad(c, e, stretch.end));
}

// How many keys with the known prefix have which next digit. The last pass tells what each block
// has: its bins, and how many of its keys lie above the prefix.
template <bool last>
__global__ void __launch_bounds__(threads)
    count_kernel(const float* c, std::size_t elements, int shift, unsigned bins, TopK work) {
  __shared__ unsigned count[most_bins];
  for (unsigned d = threadIdx.x; d < bins; d += threads) count[d] = 0;
  __syncthreads();
  const unsigned prefix = work.search->prefix, known = ~((bins << shift) - 1u);
  double above = 0;
  for_each_in(c, stretch_of(elements), [&](float x) {
    const unsigned key = magnitude_key(x);
    if (((key ^ prefix) & known) == 0)
      atomicAdd(&count[key >> shift & (bins - 1)], 1u);
    else if (last && key > prefix)
      above += 1;
  });
  __syncthreads();
  for (unsigned d = threadIdx.x; d < bins; d += threads) {
    if (count[d] != 0) atomicAdd(&work.totals[d], count[d]);
    if (last) work.per_block[blockIdx.x * bins + d] = count[d];
  }
  if (!last) return;
  above = block_sum(above);
  if (threadIdx.x == 0) work.above[blockIdx.x] = static_cast<unsigned>(above);
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

// One block: the digit in which the remaining-th from the top lies. Thread t has the t-th stretch
// of bins from the top.
__global__ void __launch_bounds__(threads) choose_kernel(int shift, unsigned bins, TopK work) {
  const unsigned remaining = work.search->remaining, each = bins / threads;
  const unsigned top = bins - 1 - threadIdx.x * each;
  unsigned count[most_bins / threads], own = 0, total;
  for (unsigned i = 0; i < each; ++i) {
    count[i] = work.totals[top - i];
    work.totals[top - i] = 0;
    own += count[i];
  }
  unsigned before = block_prefix(own, total);
  if (before >= remaining || before + own < remaining) return;
  unsigned i = 0;
  while (before + count[i] < remaining) before += count[i++];
  work.search->prefix += (top - i) << shift;
  work.search->remaining = remaining - before;
}

// How many elements of each block's stretch lie above the k-th key, and how many are equal to it.
__global__ void __launch_bounds__(threads) sum_bins_kernel(TopK work) {
  const unsigned digit = work.search->prefix & (last_bins - 1);
  const unsigned* const bins = work.per_block + blockIdx.x * last_bins;
  double above = 0;
  for (unsigned d = threadIdx.x; d < last_bins; d += threads) above += static_cast<double>(bins[d]) * (d > digit);
  above = block_sum(above);
  if (threadIdx.x != 0) return;
  work.above[blockIdx.x] += static_cast<unsigned>(above);
  work.equal[blockIdx.x] = bins[digit];
}

// Writes out what is taken of the stretch: all above the k-th key, and equal ones while there are
// some to be taken. An equal one is at place (equal ones before it) in their order.
__global__ void __launch_bounds__(threads)
    take_kernel(float* c, std::size_t elements, TopK work, SparseMessage message) {
  const unsigned kth = work.search->prefix, wanted = work.search->remaining;
  const Stretch stretch = stretch_of(elements);
  double sums[2] = {};
  for (unsigned b = threadIdx.x; b < blockIdx.x; b += threads) {
    sums[0] += work.above[b];
    sums[1] += work.equal[b];
  }
  __shared__ unsigned before[2];
  for (int i = 0; i < 2; ++i) {
    const double sum = block_sum(sums[i]);
    if (threadIdx.x == 0) before[i] = static_cast<unsigned>(sum);
  }
  __syncthreads();
  unsigned above = before[0], equal = before[1];
  for (std::size_t begin = stretch.begin; begin < stretch.end; begin += tile) {
    const std::size_t e = begin + 4 * threadIdx.x;
    const Quad q = load_quad(c, e, stretch.end);
    unsigned key[4], mine[2] = {}, all[2];
    for (int i = 0; i < 4; ++i) {
      key[i] = e + i < stretch.end ? magnitude_key(q.at[i]) : 0;
      mine[0] += e + i < stretch.end && key[i] > kth;
      mine[1] += e + i < stretch.end && key[i] == kth;
    }
    unsigned my_above = above + block_prefix(mine[0], all[0]);
    unsigned my_equal = equal + block_prefix(mine[1], all[1]);
    for (int i = 0; i < 4; ++i) {
      if (e + i >= stretch.end || key[i] < kth) continue;
      if (key[i] > kth || my_equal < wanted) {
        const unsigned at = my_above + min(my_equal, wanted);
        message.indices[at] = static_cast<std::uint32_t>(e + i);
        message.values[at] = q.at[i];
        c[e + i] = 0;
      }
      ++(key[i] > kth ? my_above : my_equal);
    }
    above += all[0];
    equal += all[1];
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
  if (reinterpret_cast<std::uintptr_t>(workspace) % alignof(double) != 0)
    return cudaErrorMisalignedAddress;
  const TopK work = in_workspace(workspace);
  unsigned blocks = 0;
  if (const auto e = grid_size(count_kernel<true>, quads_of(elements), blocks)) return e;
  blocks = std::min(blocks, most_blocks);
  launch(begin_kernel, 1, threads, stream, work, static_cast<unsigned>(message.kept));
  int shift = 31;
  for (const int digit : digits) {
    shift -= digit;
    const unsigned bins = 1u << digit;
    launch(shift == 0 ? count_kernel<true> : count_kernel<false>, blocks, threads, stream, c,
           elements, shift, bins, work);
    launch(choose_kernel, 1, threads, stream, shift, bins, work);
  }
  launch(sum_bins_kernel, blocks, threads, stream, work);
  launch(take_kernel, blocks, threads, stream, c, elements, work, message);
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
