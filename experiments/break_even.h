// The NIC bandwidth at which a run takes as long as the plain one that it is held against: found by
// bisection of cluster.nic.bandwidth, to a tenth of a percent.
#pragma once

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

// Of RunForecast::speedup_vs_baseline, which is of the plain optimizer with an all-reduce.
PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog);

}  // namespace lambcast
