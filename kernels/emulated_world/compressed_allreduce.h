// compressed_allreduce of n ranks inside one process, on the CPU references: the algorithm without
// the network, so that it can be tested with any number of ranks on any machine.
//
//   every rank   worker phase on its buffer, chunk r of the signs goes to rank r, the scale to all
//   rank r       server phase on the n chunks it received, its signs and scale go to all
//   every rank   decodes all chunks: all buffers end equal, with at most 2 n distinct values
//
// Source: DeepSpeed 0.15.4, runtime/comm/nccl.py.
#pragma once

#include <span>
#include <vector>

#include "kernels/layout.h"

namespace lambcast::emulated {

// Error feedback of each rank, kept from call to call.
struct ErrorFeedback {
  ChunkLayout layout;
  std::vector<std::vector<float>> worker;  // [rank][Np]
  std::vector<std::vector<float>> server;  // [rank][C]
};

ErrorFeedback error_feedback(const ChunkLayout& layout);
inline ErrorFeedback error_feedback(std::size_t elements, int ranks) {
  return error_feedback(chunk_layout(elements, ranks));
}

struct Scales {
  std::vector<float> worker;  // [rank]
  std::vector<float> server;  // [chunk]
};

// Replaces every rank's buffer by the decoded average. Buffers have N elements, or up to Np if the
// caller keeps the padding itself.
Scales compressed_allreduce(std::span<const std::span<float>> buffers, ErrorFeedback& errors,
                            Padding padding);

}  // namespace lambcast::emulated
