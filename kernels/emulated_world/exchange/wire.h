// Common parts of the emulated exchanges. Each averages a buffer over n ranks inside one process,
// like compressed_allreduce.h: messages are converted to bytes, counted, and read back.
//
// With error feedback e the sent values and the new errors add up to the input, after each call:
//
//   mean_i (buffer_i + e_i) [+ error of the server of a chunk]     before
//     = result + mean_i e_i [+ error of the server]                after
//
// Without error feedback the difference is lost. A single rank sends nothing and keeps its buffer.
// Closed forms of the sent bytes are in kernels/exchange_bytes.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/reference/quantisation.h"

namespace lambcast::emulated {

using Buffers = std::span<const std::span<float>>;  // one per rank, of the same size

// Number of bytes that each rank sent in a call.
struct Wire {
  std::vector<std::size_t> sent;  // [rank], bytes
};
Wire& operator+=(Wire& wire, const Wire& more);

void check(Buffers buffers);

// Returns each buffer plus the error feedback of its rank, padded with zeros. The error feedback is
// resized to the same length.
std::vector<std::vector<float>> compensated(Buffers buffers, std::vector<std::vector<float>>& owed,
                                            std::size_t padded);
// Quantises c, whose values are overwritten; the error feedback receives the rounding error.
reference::Message send(std::span<float> c, std::span<float> owed, const Quantiser& quantiser,
                        bool error_feedback);
// Copies the average to all ranks.
void hand_out(std::span<const float> average, Buffers buffers);

}  // namespace lambcast::emulated
