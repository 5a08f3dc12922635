// How flat buffers are divided: into tensors for the optimizers, into chunks for the ranks.
//
// 1-bit optimizers keep every state (weights, momentum, variance, gradient) in flat buffers whose
// tensors follow each other without gaps. compressed_allreduce over n ranks pads such a buffer of N
// elements to Np, the next multiple of n * lcm(n, 8): rank r serves chunk r of C = Np / n elements,
// so that packed signs take C / 8 whole bytes.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/lamb.py (the divider n * 8 / gcd(n, 8)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lambcast {

struct ChunkLayout {
  std::uint64_t elements = 0;  // N, without padding
  std::uint64_t padded = 0;    // Np
  std::uint64_t chunk = 0;     // C = Np / n
  int ranks = 0;               // n

  std::uint64_t packed_bytes() const { return padded / 8; }
  std::uint64_t chunk_bytes() const { return chunk / 8; }
  // Returns the elements of chunk `rank` that are not padding.
  std::uint64_t real_in_chunk(int rank) const;
};

// A 32-bit std::size_t would overflow for models beyond 4 billion parameters.
static_assert(sizeof(ChunkLayout::elements) == 8);

// Throws Error if there is no rank.
ChunkLayout chunk_layout(std::uint64_t elements, int ranks);

// Returns the layout of share `share` out of the `shares` into which the ranks of a node divide
// `elements`. Each share is exchanged over `nodes`. All shares have the same padded size P, and
// share s begins at element s P. The last shares may be shorter, or empty. So the chunks of all
// shares, one after another, are the chunks of one buffer of `shares` P elements.
ChunkLayout share_layout(std::uint64_t elements, int nodes, int shares, int share);

// Role of the padding. In DeepSpeed its meaningless elements enter both norms and have errors of
// their own.
enum class Padding {
  excluded,  // correct: scales are the RMS of real elements, padding has no error
  counted,   // DeepSpeed: scales are ||x|| / sqrt(Np), padding included
};

// Tensor t of a flat buffer is the elements [offsets[t], offsets[t+1]).
struct TensorLayout {
  std::vector<std::size_t> offsets{0};

  std::size_t tensors() const { return offsets.size() - 1; }
  std::size_t elements() const { return offsets.back(); }
  std::size_t size(std::size_t t) const { return offsets[t + 1] - offsets[t]; }
  template <typename T>
  std::span<T> view(std::span<T> flat, std::size_t t) const {
    return flat.subspan(offsets[t], size(t));
  }
};

TensorLayout tensor_layout(std::span<const std::size_t> sizes);

}  // namespace lambcast
