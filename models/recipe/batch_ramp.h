// The batch ramp: early steps take fewer samples, as with Megatron-LM's --rampup-batch-size START
// INCREMENT SAMPLES.
//
// With B [samples] the full batch, N = (B - START) / INCREMENT, and c the samples consumed before
// the step:
//
//   b(c) = START + INCREMENT floor(c N / SAMPLES)   for c < SAMPLES, then B
//
// A step that begins below a boundary keeps its batch beyond it. Micro batches stay as they are,
// fewer of them make a step; sums of gradients and updates cost as much as at the full batch.
// Source: Megatron-LM, core/num_microbatches_calculator.py (RampupBatchsizeNumMicroBatches-
// Calculator).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

struct BatchRamp {
  std::int64_t start = 0;      // > 0, below the full batch
  std::int64_t increment = 0;  // > 0, divides what lies between
  std::int64_t samples = 0;    // > 0, over which the batch grows
  friend bool operator==(const BatchRamp&, const BatchRamp&) = default;
};

// Each is simulated.
inline constexpr std::int64_t most_batches = 4096;

// "START:INCREMENT:SAMPLES"; throws Error (usage).
BatchRamp parse_ramp(std::string_view text, const Where& where);

// Throws Error (usage) where whole increments, as many as are simulated, do not lead from the start
// to batches of `full`: of all that is below, `full` is the batch of such a ramp.
void check_reaches(const BatchRamp& ramp, std::int64_t full, const Where& where);

// Steps in a row of one batch.
struct BatchPhase {
  std::int64_t batch = 0;
  std::int64_t steps = 0;
  friend bool operator==(const BatchPhase&, const BatchPhase&) = default;
};

// The phases of steps 1..total_steps in order: none of zero steps, steps adding up to total_steps.
std::vector<BatchPhase> batch_phases(const BatchRamp& ramp, std::int64_t full,
                                     std::int64_t total_steps);

// The samples of steps 1..steps, and the fewest steps that consume so many.
std::int64_t samples_in(const BatchRamp& ramp, std::int64_t full, std::int64_t steps);
std::int64_t steps_for(const BatchRamp& ramp, std::int64_t full, std::int64_t samples);

}  // namespace lambcast
