#include "kernels/cuda/top_k.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/cuda/prefix_sum.cuh"

namespace lambcast::cuda {
namespace {

// The three digits of a 31-bit magnitude. The first is the exponent with three bits of the
// mantissa. For the sample, the first two are enough.
constexpr int digits[] = {11, 10, 10};
constexpr int digits_of_sample = 2;
constexpr unsigned most_bins = 1u << 11;
constexpr std::size_t sampled = 4096, sample = 16;  // 16 neighbours of each 4096 elements

// A warp takes rows of one quad per lane. The entries of a block are contiguous in the list: with a
// table of shorter runs the warps would wait tile after tile.
constexpr int rows = 4;
constexpr std::size_t row = 4 * 32, list_part = rows * row, list_tile = warps * list_part;

// State of the search: the known bits of the key, and the number of elements with these bits that
// are still to be selected. State of the list: the number of candidates, and whether the list holds
// all elements to be selected.
struct Search {
  unsigned prefix, remaining, candidates, listed;
};
// Entries of a tile in the list.
struct Span {
  unsigned first, count;
};

// The workspace. Integer sums do not depend on the order of the atomics.
struct TopK {
  Search* search;
  unsigned* totals;  // counts by digit value, zero between passes
  unsigned* above;  // per warp: elements above the k-th key; later the sum over all previous warps
  unsigned* equal;  // the same for elements equal to the key
  Span* tiles;
  float* values;  // values in the list, in increasing order of index within a tile
  unsigned* indices;
  unsigned capacity;

  __device__ bool holds(const Span& span) const { return span.first + span.count <= capacity; }
};
std::size_t list_tiles_of(std::size_t elements) { return (elements + list_tile - 1) / list_tile; }
std::size_t capacity_of(std::size_t elements, std::size_t kept) {
  return std::min(elements, 2 * kept + (std::size_t{1} << 14));
}
constexpr std::size_t most_warps = std::size_t{top_k_blocks} * warps;

TopK in_workspace(double* workspace, std::size_t elements, std::size_t kept) {
  const std::size_t capacity = capacity_of(elements, kept);
  TopK work;
  work.search = reinterpret_cast<Search*>(workspace);
  work.values = reinterpret_cast<float*>(work.search + 1);  // aligned, because it is read by quads
  work.indices = reinterpret_cast<unsigned*>(work.values + capacity);
  work.totals = work.indices + capacity;
  work.above = work.totals + most_bins;
  work.equal = work.above + most_warps;
  work.tiles = reinterpret_cast<Span*>(work.equal + most_warps);
  work.capacity = static_cast<unsigned>(capacity);
  return work;
}

// Loads whole quads, all in flight before the first two are added.
template <int count>
__device__ void load_all_meant(const float* x, const float* owed, const std::size_t (&e)[count],
                               Quad (&c)[count]) {
  for (int q = 0; q < count; ++q) c[q] = load_quad(owed, e[q], e[q] + 4);
  if (x == nullptr) return;
  Quad add[count];
  for (int q = 0; q < count; ++q) add[q] = load_quad(x, e[q], e[q] + 4);
  for (int q = 0; q < count; ++q)
    for (int i = 0; i < 4; ++i) c[q].at[i] += add[q].at[i];
}
__device__ Quad load_meant(const float* x, const float* owed, std::size_t e, std::size_t limit) {
  Quad c = load_quad(owed, e, limit);
  if (x == nullptr) return c;
  const Quad add = load_quad(x, e, limit);
  for (int i = 0; i < 4; ++i) c.at[i] += add.at[i];
  return c;
}

__global__ void __launch_bounds__(threads) begin_kernel(TopK work, unsigned wanted) {
  for (unsigned d = threadIdx.x; d < most_bins; d += threads) work.totals[d] = 0;
  if (threadIdx.x == 0) *work.search = {0, wanted, 0, 0};
}
// Closes the list, and starts the search for the k-th key itself. If the list is too short or
// overflows, its entries return to the error feedback.
__global__ void __launch_bounds__(threads)
    close_kernel(float* owed, std::size_t tiles, TopK work, unsigned kept) {
  const unsigned candidates = work.search->candidates;
  const bool listed = candidates >= kept && candidates <= work.capacity;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    work.search->prefix = 0;
    work.search->remaining = kept;
    work.search->listed = listed;
  }
  if (listed) return;
  for (std::size_t t = blockIdx.x; t < tiles; t += gridDim.x) {
    const Span span = work.tiles[t];
    if (!work.holds(span)) continue;
    for (unsigned at = span.first + threadIdx.x; at < span.first + span.count; at += threads)
      owed[work.indices[at]] = work.values[at];
  }
}

// The elements whose keys are counted first: 16 neighbours of every 4096, chosen by a hash so that
// they are not always the same columns of a matrix. Four lanes take a quad each.
struct Sample {
  const float* x;
  const float* owed;
  std::size_t elements;

  __device__ std::size_t place(std::size_t quad) const {
    const std::size_t g = quad / (sample / 4), begin = g * sampled,
                      stretches = (min(sampled, elements - begin) + sample - 1) / sample;
    return begin + sample * (mixed(g) % stretches) + 4 * (quad % (sample / 4));
  }
  template <typename F>
  __device__ void for_each(F f) const {
    constexpr int ahead = 4;
    const std::size_t stride = std::size_t{gridDim.x} * threads,
                      whole = elements / sampled * (sample / 4),
                      quads = (elements + sampled - 1) / sampled * (sample / 4);
    std::size_t q = blockIdx.x * std::size_t{threads} + threadIdx.x;
    for (; q + (ahead - 1) * stride < whole; q += ahead * stride) {
      std::size_t e[ahead];
      Quad c[ahead];
      for (int s = 0; s < ahead; ++s) e[s] = place(q + s * stride);
      load_all_meant(x, owed, e, c);
      for (const Quad& each : c)
        for (const float value : each.at) f(value);
    }
    for (; q < quads; q += stride) {
      const std::size_t e = place(q);
      if (e >= elements) continue;
      const Quad c = load_meant(x, owed, e, elements);
      for (int i = 0; i < 4; ++i)
        if (e + i < elements) f(c.at[i]);
    }
  }
};
// The elements whose keys are counted after the sample: the list, or all elements if the list lacks
// some that are to be selected.
struct Candidates {
  TopK work;
  const float* owed;
  std::size_t elements;

  template <typename F>
  __device__ void for_each(F f) const {
    const bool listed = work.search->listed;
    const float* const from = listed ? work.values : owed;
    const std::size_t count = listed ? work.search->candidates : elements;
    for_each_loaded_quad(
        count, [&](std::size_t e, std::size_t limit) { return load_quad(from, e, limit); },
        [&](std::size_t e, std::size_t limit, const Quad& q) {
          for (int i = 0; i < 4; ++i)
            if (e + i < limit) f(q.at[i]);
        });
  }
};

// Counts the keys with the known prefix by their next digit.
template <typename Source>
__global__ void __launch_bounds__(threads)
    count_kernel(Source source, int shift, unsigned bins, TopK work) {
  __shared__ unsigned count[most_bins];
  for (unsigned d = threadIdx.x; d < bins; d += threads) count[d] = 0;
  __syncthreads();
  const unsigned prefix = work.search->prefix, known = ~((bins << shift) - 1u);
  source.for_each([&](float x) {
    const unsigned key = magnitude_bits(x);
    if (((key ^ prefix) & known) == 0) atomicAdd(&count[key >> shift & (bins - 1)], 1u);
  });
  __syncthreads();
  for (unsigned d = threadIdx.x; d < bins; d += threads)
    if (count[d] != 0) atomicAdd(&work.totals[d], count[d]);
}

// Runs as one block: finds the digit of the remaining-th key from the top. Thread t has the t-th
// segment of bins from the top.
__global__ void __launch_bounds__(finish_threads)
    choose_kernel(int shift, unsigned bins, TopK work) {
  const unsigned remaining = work.search->remaining, each = bins / finish_threads;
  const unsigned top = bins - 1 - threadIdx.x * each;
  unsigned count[most_bins / finish_threads], own = 0, total;
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

// Returns the number of this warp in the grid.
__device__ std::size_t warp_index() { return blockIdx.x * std::size_t{warps} + threadIdx.x / 32; }
// Calls f for every tile of this warp's contiguous range of tiles.
template <typename F>
__device__ void for_each_tile(std::size_t elements, F f) {
  const std::size_t tiles = (elements + list_tile - 1) / list_tile,
                    all = std::size_t{gridDim.x} * warps;
  const std::size_t each = (tiles + all - 1) / all;
  const std::size_t end = min((warp_index() + 1) * each, tiles);
  for (std::size_t t = warp_index() * each; t < end; ++t) f(t);
}

// Adds x to the error feedback for a lane's quads in the tile of a warp, and returns a bit for each
// element that goes into the list. These elements become 0.
template <bool whole>
__device__ unsigned wanted_of(const float* x, float* owed, std::size_t begin, std::size_t elements,
                              unsigned least, Quad (&c)[rows]) {
  std::size_t e[rows];
  for (int r = 0; r < rows; ++r) e[r] = begin + r * row;
  if constexpr (whole)
    load_all_meant(x, owed, e, c);
  else
    for (int r = 0; r < rows; ++r) c[r] = load_meant(x, owed, e[r], elements);
  unsigned wanted = 0;
  for (int r = 0; r < rows; ++r) {
    Quad rest = c[r];
    for (int i = 0; i < 4; ++i) {
      const bool is = (whole || e[r] + i < elements) && magnitude_bits(c[r].at[i]) >= least;
      wanted |= static_cast<unsigned>(is) << (4 * r + i);
      if (is) rest.at[i] = 0;
    }
    if (x != nullptr || (wanted >> 4 * r) != 0)
      store_quad(owed, e[r], whole ? e[r] + 4 : elements, rest);
  }
  return wanted;
}

// Adds x to the error feedback and moves elements at or above the sample's threshold into the list.
// If there are more than it can hold, they are only counted. A block reserves room once per tile,
// because all blocks use the same address for this.
__global__ void __launch_bounds__(threads, 6)
    list_kernel(const float* x, float* owed, std::size_t elements, TopK work) {
  __shared__ unsigned of_warps[2][warps], firsts[2];  // counts of the current and the previous tile
  const unsigned least = work.search->prefix;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int turn = 0;
  for (std::size_t t = blockIdx.x; t * list_tile < elements; t += gridDim.x, turn ^= 1) {
    const std::size_t begin = t * list_tile + warp * list_part + 4 * lane;
    Quad c[rows];
    const unsigned wanted = (t + 1) * list_tile <= elements
                                ? wanted_of<true>(x, owed, begin, elements, least, c)
                                : wanted_of<false>(x, owed, begin, elements, least, c);
    unsigned counts = 0, in_row;  // eight bits for each row, which has at most 128 elements
    for (int i = 0; i < 4; ++i)
      for (int r = 0; r < rows; ++r) counts += (wanted >> (4 * r + i) & 1) << 8 * r;
    const unsigned before = warp_prefix(counts, in_row);
    unsigned in_warp = 0;
    for (int r = 0; r < rows; ++r) in_warp += in_row >> 8 * r & 0xff;
    if (lane == 0) of_warps[turn][warp] = in_warp;
    __syncthreads();
    unsigned all = 0, first = 0;
    for (int w = 0; w < warps; ++w) {
      if (w < warp) first += of_warps[turn][w];
      all += of_warps[turn][w];
    }
    if (threadIdx.x == 0) {
      firsts[turn] = all != 0 ? atomicAdd(&work.search->candidates, all) : 0;
      work.tiles[t] = {firsts[turn], all};
    }
    __syncthreads();
    const bool fits = work.holds({firsts[turn], all});
    first += firsts[turn];
    for (int r = 0; r < rows; ++r) {
      if (!fits) {
        if ((wanted >> 4 * r & 15) != 0) store_quad(owed, begin + r * row, elements, c[r]);
        continue;
      }
      unsigned at = first + (before >> 8 * r & 0xff);
      first += in_row >> 8 * r & 0xff;
      for (int i = 0; i < 4; ++i) {
        if (!(wanted >> (4 * r + i) & 1)) continue;
        work.values[at] = c[r].at[i];
        work.indices[at++] = static_cast<unsigned>(begin + r * row + i);
      }
    }
  }
}

// Calls f(from, indices, at, count) for each tile of a warp when the k-th key is known, in
// increasing order of indices. The entries are from[at], from[at + 1], ...; if `indices` is null,
// their positions are the indices.
template <typename F>
__device__ void for_each_candidates(const TopK& work, const float* owed, std::size_t elements,
                                    F f) {
  const bool listed = work.search->listed;
  for_each_tile(elements, [&](std::size_t t) {
    if (listed) {
      const Span span = work.tiles[t];
      f(work.values, work.indices, span.first, span.count);
    } else {
      f(owed, nullptr, t * list_tile, min(list_tile, elements - t * list_tile));
    }
  });
}

// Counts the elements above the k-th key and those equal to it in each warp's tiles.
__global__ void __launch_bounds__(threads)
    tally_kernel(const float* owed, std::size_t elements, TopK work) {
  const unsigned kth = work.search->prefix;
  unsigned above = 0, equal = 0;
  for_each_candidates(work, owed, elements,
                      [&](const float* from, const unsigned*, std::size_t at, std::size_t count) {
                        for (std::size_t i = threadIdx.x % 32; i < count; i += 32) {
                          const unsigned key = magnitude_bits(from[at + i]);
                          above += key > kth;
                          equal += key == kth;
                        }
                      });
  above = warp_sum(above);
  equal = warp_sum(equal);
  if (threadIdx.x % 32 != 0) return;
  work.above[warp_index()] = above;
  work.equal[warp_index()] = equal;
}

// Runs as one block: replaces the counts of warps by the sums over previous warps.
__global__ void __launch_bounds__(finish_threads) list_sum_kernel(TopK work, unsigned count) {
  const unsigned each = (count + finish_threads - 1) / finish_threads;
  const unsigned begin = min(threadIdx.x * each, count), end = min(begin + each, count);
  const auto add_up = [&](unsigned* of) {
    unsigned own = 0, total;
    for (unsigned w = begin; w < end; ++w) own += of[w];
    unsigned before = block_prefix(own, total);
    for (unsigned w = begin; w < end; ++w) {
      const unsigned here = of[w];
      of[w] = before;
      before += here;
    }
  };
  add_up(work.above);
  add_up(work.equal);
}

// Writes the selected elements: all above the k-th key, and equal ones until there are k. The
// position of an equal one is the number of equal ones before it. Other entries of the list return
// to the error feedback.
__global__ void __launch_bounds__(threads, 5)
    take_kernel(float* owed, std::size_t elements, TopK work, SparseMessage message) {
  const unsigned kth = work.search->prefix, wanted = work.search->remaining;
  unsigned above = work.above[warp_index()], equal = work.equal[warp_index()];
  for_each_candidates(
      work, owed, elements,
      [&](const float* from, const unsigned* indices, std::size_t at, std::size_t count) {
        for (std::size_t begin = 0; begin < count; begin += row) {
          const std::size_t first = begin + 4 * (threadIdx.x % 32);
          float value[4];
          unsigned key[4], mine = 0, all;  // counts: larger ones, and equal ones << 16
          for (int i = 0; i < 4; ++i) {
            value[i] = first + i < count ? from[at + first + i] : 0;
            key[i] = magnitude_bits(value[i]);
            if (first + i < count)
              mine += (key[i] > kth) + (static_cast<unsigned>(key[i] == kth) << 16);
          }
          const unsigned before = warp_prefix(mine, all);
          unsigned my_above = above + (before & 0xffff), my_equal = equal + (before >> 16);
          for (int i = 0; i < 4 && first + i < count; ++i) {
            const bool taken = key[i] > kth || (key[i] == kth && my_equal < wanted);
            if (!taken && !indices) continue;
            const std::size_t e = indices ? indices[at + first + i] : at + first + i;
            if (taken) {
              const unsigned to = my_above + min(my_equal, wanted);
              message.indices[to] = static_cast<std::uint32_t>(e);
              message.values[to] = value[i];
            }
            if (taken != (indices != nullptr)) owed[e] = taken ? 0 : value[i];
            my_above += key[i] > kth;
            my_equal += key[i] == kth;
          }
          above += all & 0xffff;
          equal += all >> 16;
        }
      });
}

}  // namespace

std::size_t top_k_workspace(std::size_t elements, std::size_t kept) {
  const std::size_t words = 4 + 2 * capacity_of(elements, kept) + most_bins + 2 * most_warps +
                            2 * list_tiles_of(elements);
  return (words + 1) / 2;
}

cudaError_t top_k(const float* x, float* owed, std::size_t elements, const SparseMessage& message,
                  double* workspace, cudaStream_t stream) {
  const std::size_t kept = message.kept;
  if (kept < 1 || kept > elements) return cudaErrorInvalidValue;
  if (const auto e = check_aligned(x, owed, workspace)) return e;
  const TopK work = in_workspace(workspace, elements, kept);
  unsigned blocks = 0;
  if (const auto e = grid_size(list_kernel, list_tiles_of(elements), blocks)) return e;
  const auto search = [&](const auto& source, int of_digits) {
    int shift = 31;
    for (int d = 0; d < of_digits; ++d) {
      shift -= digits[d];
      const unsigned bins = 1u << digits[d];
      launch(count_kernel<std::decay_t<decltype(source)>>, blocks, threads, stream, source, shift,
             bins, work);
      launch(choose_kernel, 1, finish_threads, stream, shift, bins, work);
    }
  };
  // Number of sampled elements above the threshold: the expected number, plus six standard
  // deviations (three if neighbours come in fours of equal magnitude), plus eight for small
  // numbers. If the sample has fewer elements, all elements are candidates.
  const double share = static_cast<double>(sample) / sampled;
  const double expected = share * static_cast<double>(kept);
  const double wanted = expected + 6 * std::sqrt(expected) + 8;
  launch(begin_kernel, 1, threads, stream, work, static_cast<unsigned>(wanted));
  search(Sample{x, owed, elements}, digits_of_sample);
  launch(list_kernel, blocks, threads, stream, x, owed, elements, work);
  launch(close_kernel, blocks, threads, stream, owed, list_tiles_of(elements), work,
         static_cast<unsigned>(kept));
  search(Candidates{work, owed, elements}, 3);
  if (const auto e = grid_size(take_kernel, (list_tiles_of(elements) + warps - 1) / warps, blocks))
    return e;
  blocks = std::min(blocks, top_k_blocks);
  launch(tally_kernel, blocks, threads, stream, owed, elements, work);
  launch(list_sum_kernel, 1, finish_threads, stream, work, blocks * warps);
  launch(take_kernel, blocks, threads, stream, owed, elements, work, message);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
