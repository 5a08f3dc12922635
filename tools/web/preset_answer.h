// Answers for the page without a counterpart in the JSON of the command line.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns, as JSON, the model and cluster presets with the figures shown in the chooser, and the
// step parts with labels and colours.
std::string preset_answer();

// Returns the run of `simulate` for each value of a key, as an array of {"value", "run", "fits"},
// or of {"value", "refused"} if it cannot run.
std::string curve_answer(const WhatIf& texts, const std::string& key,
                         const std::vector<std::string>& values);

}  // namespace lambcast
