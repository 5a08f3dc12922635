// Answers for the page without a counterpart in the JSON of the command line.
#pragma once

#include <string>

#include "experiments/scenario/what_if.h"

namespace lambcast {

// The models and clusters that ship inside, each with the figures that its choice is made by, and
// the parts of a step with their labels and colours.
std::string preset_answer();

// The run of `simulate` for each value of a scan ("cluster.nic.bandwidth=1Gbit/s:100Gbit/s:x2"): an
// array of {"value", "run"}, or of {"value", "refused"} if it cannot run.
std::string curve_answer(const WhatIf& texts, const std::string& scan);

}  // namespace lambcast
