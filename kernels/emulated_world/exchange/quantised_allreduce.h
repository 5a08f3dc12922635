// An all-reduce in 8 or 4 bits per element. Two phases, as compressed_allreduce has: chunk r of
// every rank's buffer goes to rank r, which averages what it receives and sends its average to all.
// Both quantise and, with error feedback, both owe what they could not say.
//
// Colossal-AI's fp8 all-reduce is {fp8_e4m3, 0} without error feedback, but that its scale is that
// of the whole buffer where here every message has its own. Source: Colossal-AI quantization/fp8.py
// (all_reduce_fp8).
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
