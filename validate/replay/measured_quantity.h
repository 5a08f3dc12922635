// Names of measured quantities: words of `--measured NAME=VALUE`, and columns of --runs
// (user_runs.h). Some values have a unit; the quantities of source.h are plain numbers:
//
//   step_time=5436ms   step_time_s=5.436      mfu=41%   mfu_pct=41
//   memory=71GiB       memory_gib=71          samples_per_s, tokens_per_s, ... =1200
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "validate/replay/source.h"

namespace lambcast {

struct MeasuredQuantity {
  std::string name, example;
  Quantity quantity;
  double (*parse)(std::string_view text, const Where& where);
};

// All names, those with a unit first.
const std::vector<MeasuredQuantity>& measured_quantities();
std::vector<std::string> measured_names();

// Returns the value in the unit of its quantity. Throws Error (usage) unless it is above zero.
double parse_measured(const MeasuredQuantity& of, std::string_view text, const Where& where);

// Parses the NAME=VALUE of --measured for the run that `what_if` describes. Throws Error (usage)
// for an unknown name and for a value that is not above zero.
SourceFigure measured_step(const std::string& text, const WhatIf& what_if);

}  // namespace lambcast
