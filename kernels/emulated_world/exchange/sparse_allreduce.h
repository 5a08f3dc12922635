// Exchanges k of N elements; the others become error feedback. Top-k: the largest of each rank,
// gathered with their indices. Random-k: one random element of each of k buckets, the same on all
// ranks, all-reduced in fp32. Sources: arXiv:1712.01887, arXiv:1809.07599; reference/sparse.h.
#pragma once

#include <cstdint>

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

struct SparseAllreduce {
  enum class Choice { top, random };
  Choice choice = Choice::top;
  std::size_t kept = 1;  // k
  bool error_feedback = true;
  std::uint64_t seed = 1;
  std::vector<std::vector<float>> owed = {};  // [rank][N]
  std::uint64_t calls = 0;
};
// Throws Error unless kept is 1 to N.
Wire average(SparseAllreduce& state, Buffers buffers);

// Gathers the messages of all ranks, each with a fixed number of values per chunk
// (reference/chunk_top_k.h, dct_sign.h), and averages the decoded messages. Unsent values become
// error feedback.
struct ChunkedGather {
  ChunkCode code = ChunkCode::largest;
  std::size_t kept = 64;  // values per chunk
  bool error_feedback = true;
  std::vector<std::vector<float>> owed = {};  // [rank][N]
};
// Throws Error unless kept is 1 to 4,096.
Wire average(ChunkedGather& state, Buffers buffers);

}  // namespace lambcast::emulated
