// Megatron-LM's --step-batch-size-schedule "0:16 2.4B:320 4.8B:624": from so many tokens on
// (samples, where no --seq-length is given) batches of so many samples. Numbers may end in K, M, B
// or T.
//
// Steps alike, as far from one another and as large, are the ramp of --rampup-batch-size
// (models/recipe/batch_ramp.h), to which Megatron-LM turned its own example: START the first batch,
// INCREMENT what each adds, SAMPLES where the last begins, to a sample. Others are refused: each of
// their batches is a phase of a run of its own.
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
  std::int64_t full = 0;  // the last
  std::string ramp;       // "START:INCREMENT:SAMPLES"; empty: the same from the first on
};

// Throws Error (usage).
ScheduledBatch scheduled_batch(std::string_view text, std::optional<std::int64_t> seq_length,
                               const Where& where);

}  // namespace lambcast::megatron
