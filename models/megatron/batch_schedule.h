// Megatron-LM's --step-batch-size-schedule "0:16 2.4B:320 4.8B:624": pairs of a number of tokens
// (of samples without --seq-length) and the batch size in samples from there on. Numbers may end in
// K, M, B or T.
//
// Steps with equal distances and equal increments are the ramp of --rampup-batch-size
// (models/recipe/batch_ramp.h), as Megatron-LM itself treats its example: START is the first batch,
// INCREMENT the growth per step, SAMPLES the start of the last step, with a tolerance of one
// sample. Other schedules are refused: each of their batches must be a separate phase of the run.
// Source: Megatron-LM, core/num_microbatches_calculator.py
// (StepBatchsizeNumMicroBatchesCalculator).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast::megatron {

struct ScheduledBatch {
  std::int64_t full = 0;  // the last batch
  std::string ramp;       // "START:INCREMENT:SAMPLES"; empty: constant batch
};

// Returns the batch and its ramp. Throws Error (usage) for an invalid schedule.
ScheduledBatch scheduled_batch(std::string_view text, std::optional<std::int64_t> seq_length,
                               const Where& where);

}  // namespace lambcast::megatron
