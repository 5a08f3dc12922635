// Compares the whole steps that a survey timed (steps.csv, validate/measure/nccl_steps.h) with
// their forecast. Both are the exchange, the compression and the update of a step without a forward
// and backward pass. The speed-up of a row is relative to the plain step above it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns the number of weights of the question's model that an optimizer updates; 0 if --model
// does not name it. Throws Error for an unknown model.
std::uint64_t weights_of(const WhatIf& question);

// Returns a table for people: for each step its measured and forecast time, and both speed-ups.
// `cluster`, a preset or a file, and the model and device of the question make the forecast.
// Returns nothing if the file has no rows or does not exist. Throws Error naming the file if it is
// damaged.
std::string steps_side_by_side(const std::filesystem::path& steps, const std::string& cluster,
                               const WhatIf& question);

}  // namespace lambcast
