// What the emulated exchanges share. Each averages a buffer over n ranks inside one process, as
// compressed_allreduce.h does: what travels is made into bytes, counted, and read back.
//
// Where an error is owed, what was sent plus what is owed equals what was meant, after every call:
//
//   mean_i (buffer_i + owed_i) [+ owed by the server of a chunk]     before
//     = what all receive + mean_i owed_i [+ owed by the server]      after
//
// Without error feedback nothing is owed and the difference is lost. One rank alone sends nothing
// and keeps its buffer. Closed forms of what is sent are in kernels/exchange_bytes.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/reference/quantisation.h"

namespace lambcast::emulated {

using Buffers = std::span<const std::span<float>>;  // one per rank, of the same size

// What each rank sent in a call.
struct Wire {
  std::vector<std::size_t> sent;  // [rank], bytes
};
Wire& operator+=(Wire& wire, const Wire& more);

void check(Buffers buffers);

// Returns every buffer plus the error feedback of its rank, padded with zeros; `owed` is resized
// alike.
std::vector<std::vector<float>> compensated(Buffers buffers, std::vector<std::vector<float>>& owed,
                                            std::size_t padded);
// Quantises c, which is spent; with error feedback the rounding error goes to `owed`.
reference::Message send(std::span<float> c, std::span<float> owed, const Quantiser& quantiser,
                        bool error_feedback);
// The same average to all.
void hand_out(std::span<const float> average, Buffers buffers);

}  // namespace lambcast::emulated
