// Other ways of averaging gradients than an all-reduce of all their bits, side by side with the
// 1-bit optimizers: what each sends, which kernels it runs around that, and what it keeps. After
// the last backward pass, one after another; none overlaps it.
//
//   K elements, n ranks, per step and rank
//   fp8           scale and cast; all_to_all of K bytes and scales; sum; cast; all_gather of K
//   bytes
//                 (Colossal-AI quantization/fp8.py, fp8_communication)
//   int8, int4    the same in K or K/2 bytes, a scale per 2,048 elements (ZeRO++,
//                 arXiv:2306.10209, section 3.3, on one level)
//   powersgd:R    all_reduce of 4 R (h + w) bytes of a matrix, twice one factor, others plain;
//                 6 h w R FLOPs; error feedback (Vogels et al. 2019, arXiv:1905.13727)
//   topk:SHARE    all_gather of 8 bytes for each of SHARE K values and indices: grows with n; error
//                 feedback (Lin et al. 2018, arXiv:1712.01887)
//   randomk:SHARE all_reduce of SHARE K values, indices from a seed; error feedback
//   local:H       nothing for H - 1 steps, then weights averaged by an outer optimizer (DiLoCo,
//                 arXiv:2311.08105)
//
// Bytes are those of kernels/exchange_bytes.h. What all of this does to convergence is not
// modelled.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/compressed_allreduce.h"
#include "models/training/exchange.h"

namespace lambcast {

// In place of the all-reduce of K gradients.
std::vector<ExchangePart> gradient_exchange(const TrainingPlan& training);

}  // namespace lambcast
