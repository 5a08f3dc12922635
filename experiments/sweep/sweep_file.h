// The text of a sweep file for a sweep given by flags: the shared keys, and the values of the
// varied ones. `sweep` runs this file, so a sweep by flags and one by its file give the same bytes.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/scan.h"
#include "experiments/scenario/what_if.h"

namespace lambcast {

// Throws Error (usage) for a key that is both set and varied.
std::string sweep_file(const WhatIf& base, const std::vector<Axis>& axes);

}  // namespace lambcast
