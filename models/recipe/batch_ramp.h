// The batch ramp: early steps take fewer samples, as with Megatron-LM's --rampup-batch-size START
// INCREMENT SAMPLES.
//
// With B [samples] the full batch, N = (B - START) / INCREMENT, and c the samples consumed before
// the step:
//
//   b(c) = START + INCREMENT floor(c N / SAMPLES)   for c < SAMPLES, then B
//
// A step that begins below a boundary keeps its batch beyond it. The size of a micro batch is
// constant, so early steps have fewer micro batches. Gradient reductions and updates cost the same
// as at the full batch.
// Source: Megatron-LM, core/num_microbatches_calculator.py
// (RampupBatchsizeNumMicroBatchesCalculator).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

struct BatchRamp {
  std::int64_t start = 0;      // > 0, below the full batch
  std::int64_t increment = 0;  // > 0, divides the difference to the full batch
  std::int64_t samples = 0;    // > 0, number of samples over which the batch grows
  friend bool operator==(const BatchRamp&, const BatchRamp&) = default;
};

// Limit of batch sizes, each of which is simulated.
inline constexpr std::int64_t most_batches = 4096;

// Parses "START:INCREMENT:SAMPLES"; throws Error (usage).
BatchRamp parse_ramp(std::string_view text, const Where& where);

// Throws Error (usage) unless a whole number of increments, at most `most_batches`, leads from the
// start to `full`.
void check_reaches(const BatchRamp& ramp, std::int64_t full, const Where& where);

// Consecutive steps with one batch size.
struct BatchPhase {
  std::int64_t batch = 0;
  std::int64_t steps = 0;
  friend bool operator==(const BatchPhase&, const BatchPhase&) = default;
};

// Returns the phases of steps 1..total_steps in order. No phase has zero steps, and all steps sum
// to total_steps.
std::vector<BatchPhase> batch_phases(const BatchRamp& ramp, std::int64_t full,
                                     std::int64_t total_steps);

// Return the samples of steps 1..steps, and the fewest steps that consume `samples`.
std::int64_t samples_in(const BatchRamp& ramp, std::int64_t full, std::int64_t steps);
std::int64_t steps_for(const BatchRamp& ramp, std::int64_t full, std::int64_t samples);

}  // namespace lambcast
