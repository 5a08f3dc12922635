// Which input moves the answer most? Elasticities of the run's time and of its speed-up by central
// differences in logarithms,
//
//   e = (ln T(x (1 + h)) - ln T(x (1 - h))) / (ln (1 + h) - ln (1 - h))
//
// so that one per cent more of x makes the run e per cent longer. Numbers of the cluster and the
// device move by h (numeric_inputs.h). What the user chooses moves as it can: GPUs, batch, micro
// batch and sequence are doubled and halved, one of the two where only one runs; GPUs and micro
// batch leave the global batch as it is, the global batch leaves the number of steps.
//
// An elasticity is of this run: libraries choose algorithms by size, so it may jump elsewhere. How
// far an input may be off is not in it: what is known well may move the answer most.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario.h"
#include "models/training/forecast.h"

namespace lambcast {

struct InputEffect {
  std::string key, value;
  std::optional<Provenance> provenance;  // nothing: the user's choice
  double time_elasticity = 0;
  std::optional<double> speedup_elasticity;  // of runs that compress
};

struct Sensitivity {
  Scenario scenario;
  Forecast forecast;
  double by = 0;                     // h
  std::vector<InputEffect> effects;  // the strongest on the time first
  std::vector<std::string> fixed;    // choices of which no other value runs
  // The strongest among numbers that nobody measured; null where none of them moves anything.
  const InputEffect* to_measure() const;
};

// Throws Error (usage) as resolve() does.
Sensitivity sensitivity_of(const WhatIf& what_if, double by, Catalog& catalog);

// What moves the time by less than this for each per cent is noise of rounding to picoseconds.
inline constexpr double no_effect = 1e-6;

}  // namespace lambcast
