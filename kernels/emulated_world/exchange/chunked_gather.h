// Gathers the messages of all ranks that have a fixed number of values of each chunk
// (reference/chunked.h), and averages what they stand for. The rest becomes error feedback.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

struct ChunkedGather {
  ChunkCode code = ChunkCode::largest;
  std::size_t kept = 64;  // of a chunk
  bool error_feedback = true;
  std::vector<std::vector<float>> owed = {};  // [rank][N]
};
// Throws Error unless kept is 1 to 4,096.
Wire average(ChunkedGather& state, Buffers buffers);

}  // namespace lambcast::emulated
