// Answers for the page without a counterpart in the JSON of the command line.
#pragma once

#include <string>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns, as JSON, the model and cluster presets with the figures shown in the chooser, and the
// step parts with labels and colours.
std::string preset_answer();

// Returns the run of `simulate` for each value of a scan
// ("cluster.nic.bandwidth=1Gbit/s:100Gbit/s:x2"), as an array of {"value", "run"}, or of {"value",
// "refused"} if it cannot run.
std::string curve_answer(const WhatIf& texts, const std::string& scan);

}  // namespace lambcast
