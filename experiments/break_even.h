// The NIC bandwidth at which a run begins or ceases to pay, found by bisection to a tenth of a
// percent.
#pragma once

#include <functional>
#include <optional>

#include "experiments/catalog.h"
#include "experiments/what_if.h"
#include "sim/base/units.h"

namespace lambcast {

struct PayingBandwidth {
  std::optional<Bandwidth> at;         // nothing: none between 100 Mbit/s and 10 Tbit/s
  bool pays_above = false;             // else below
  bool pays_at_any_bandwidth = false;  // meaningful without one
};

// `speedup` of a bandwidth crosses 1 once at most. Where it stays within 0.1 % of 1 from half to
// twice the bandwidth found, the sign of the difference is that of rounding: then the bandwidth is
// told at which the run begins or ceases to be more than 0.1 % faster.
PayingBandwidth break_even(const std::function<double(Bandwidth)>& speedup);

// By RunForecast::speedup_vs_baseline, which is of the plain optimizer with an all-reduce.
PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog);

// The same question on NICs of another bandwidth. A name plate that was stated is raised to it, so
// that a scan is never refused for it.
WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic);

}  // namespace lambcast
