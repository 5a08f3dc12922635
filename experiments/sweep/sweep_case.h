// For tests: makes a sweep from the text of its file.
#pragma once

#include "experiments/sweep/sweep.h"

namespace lambcast {

inline SweepPlan plan(std::string_view text, const std::vector<Axis>& axes = {}) {
  return plan_sweep(text, "sweep.toml", axes);
}

}  // namespace lambcast
