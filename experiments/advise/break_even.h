// The NIC bandwidth at which a run begins or ceases to pay, found by bisection to a tenth of a
// percent.
#pragma once

#include <functional>
#include <optional>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "sim/base/units.h"

namespace lambcast {

struct PayingBandwidth {
  std::optional<Bandwidth> at;         // nothing: none between 100 Mbit/s and 10 Tbit/s
  bool pays_above = false;             // else below
  bool pays_at_any_bandwidth = false;  // meaningful without one
};

using SpeedupAt = std::function<double(Bandwidth)>;

// Returns the speed-up from which on a run counts as faster: 1, or 1.001 if `speedup` stays within
// 0.1 % of 1 from half to twice the bandwidth at which it crosses 1. There the sign of the
// difference is that of rounding.
double break_even_level(const SpeedupAt& speedup);

// `speedup` of a bandwidth crosses `level` once at most.
PayingBandwidth break_even(const SpeedupAt& speedup, double level);

// By RunForecast::speedup_vs_baseline, which is of the plain optimizer with an all-reduce.
PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog);

// The same question on NICs of another bandwidth. A name plate that was stated is raised to it, so
// that a scan is never refused for it.
WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic);

}  // namespace lambcast
