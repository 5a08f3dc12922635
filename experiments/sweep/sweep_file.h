// The text of a sweep file from flags alone: what all points share, and the values of what varies.
// `sweep` runs the file that it would write, so both are the same sweep to the byte.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/scan.h"
#include "experiments/scenario/what_if.h"

namespace lambcast {

// Throws Error (usage) for a key that is both said and varied.
std::string sweep_file(const WhatIf& base, const std::vector<Axis>& axes);

}  // namespace lambcast
