// The NIC bandwidth at which a run begins or ceases to pay: found by bisection to a tenth of a
// percent, of whatever "pays" means to who asks.
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

// `pays` tells of a bandwidth, and changes once at most.
PayingBandwidth break_even(const std::function<bool(Bandwidth)>& pays);

// By RunForecast::speedup_vs_baseline, which is of the plain optimizer with an all-reduce.
PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog);

// The same question on NICs of another bandwidth. A name plate that was stated is raised to it, so
// that a scan is never refused for it.
WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic);

}  // namespace lambcast
