// Compares the whole steps that a survey timed (steps.csv, validate/measure/nccl_steps.h) with
// their forecast. Both are the exchange, the compression and the update of a step without a forward
// and backward pass. The speed-up of a row is relative to the baseline above it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns the number of weights of the question's model that an optimizer updates; 0 if the
// question has no --model. Throws Error for an unknown model.
std::uint64_t weights_of(const WhatIf& question);

// Returns a table as text: for each step its measured and forecast time, and both speed-ups.
// `cluster` (a preset or a file) and the question's model and device determine the forecast.
// Returns an empty text if the file has no rows or does not exist, or if the question has no model.
// Throws Error naming the file if it is damaged.
std::string steps_side_by_side(const std::filesystem::path& steps, const std::string& cluster,
                               const WhatIf& question);

}  // namespace lambcast
