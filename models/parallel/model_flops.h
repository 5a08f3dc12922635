// FLOPs of training on one sequence, as papers count them.
//
// Model FLOPs are the minimum: forward, and twice that backward. Hardware FLOPs include
// recomputation. For a GPT (Narayanan et al. 2021, equation 3 and appendix; Korthikanti et al.
// 2022, appendix A), per sequence:
//   model      72 L s h^2 (1 + s/(6h) + V/(12 h L))
//   selective  + 4 L s^2 h           scores and context of every layer once more
//   alternate  about half of every layer's matrices once more
//   full       96 L s h^2 (1 + s/(6h) + V/(16 h L))    every layer once more, not the head
// Korthikanti et al. print 72 L s h^2 (1 + s/(3h) + V/(12 h L)) for selective: three times the
// recomputed scores and context. Their hardware utilisation uses it.
//
// Attention counts the full s x s square (as for Llama 3.1 405B in MLPerf Training v5.0: 21,508
// TFLOP) or its causal half (Llama 3.1 8B in v5.1: 421.6 TFLOP).
#pragma once

#include <cstdint>

#include "models/parallel/activation_memory.h"
#include "models/shape/shape.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

enum class AttentionCount { full, causal };

// Returns the FLOPs of scores and context of all layers in one forward pass.
Flops attention_core_flops(const ModelShape& shape, std::int64_t seq_len, AttentionCount count);

Flops model_flops(const ModelShape& shape, std::int64_t seq_len,
                  AttentionCount count = AttentionCount::full);
Flops hardware_flops(const ModelShape& shape, std::int64_t seq_len, Recompute recompute,
                     AttentionCount count = AttentionCount::full);

// Returns FLOPs with selective recomputation as Korthikanti et al. count it, only to reproduce
// their figures.
Flops korthikanti_selective_flops(const ModelShape& shape, std::int64_t seq_len);

}  // namespace lambcast::parallel
