// An all-reduce in 8 or 4 bits per element, in the two phases of compressed_allreduce: chunk r of
// each rank's buffer goes to rank r, which averages the chunks and sends its average to all ranks.
// Both phases quantise and may have error feedback.
//
// Colossal-AI's fp8 all-reduce is {fp8_e4m3, 0} without error feedback, except that it has one
// scale for the whole buffer, while here each message has its own. Source: Colossal-AI
// quantization/fp8.py (all_reduce_fp8).
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

struct QuantisedAllreduce {
  Quantiser quantiser;
  bool error_feedback = false;
  std::vector<std::vector<float>> worker = {};  // [rank][chunks], error feedback
  std::vector<std::vector<float>> server = {};  // [rank][a chunk], error feedback
};
Wire average(QuantisedAllreduce& state, Buffers buffers);

}  // namespace lambcast::emulated
