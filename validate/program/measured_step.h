// A step that a user measured, as the words of a flag: "step_time=5436ms", "tokens_per_gpu_s=3400",
// "mfu=41%", "memory=71GiB".
#pragma once

#include <string>

#include "validate/replay/source.h"

namespace lambcast {

// Parses METRIC=VALUE for the run that `what_if` describes. Throws Error (usage) for an unknown
// metric and for a value that is not above zero.
SourceFigure measured_step(const std::string& text, const WhatIf& what_if);

// The words of the metrics.
std::vector<std::string> measured_step_names();

}  // namespace lambcast
