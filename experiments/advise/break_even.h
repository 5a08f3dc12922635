// The NIC bandwidth at which a run begins or ceases to pay, found by bisection to a tenth of a
// percent.
#pragma once

#include <functional>
#include <optional>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "models/training/price/collective_costs.h"
#include "sim/base/units.h"

namespace lambcast {

struct PayingBandwidth {
  std::optional<Bandwidth> at;          // nothing: none between 100 Mbit/s and 10 Tbit/s
  bool pays_above = false;              // else below
  bool pays_at_any_bandwidth = false;   // meaningful without one
  std::optional<Bandwidth> up_to = {};  // if a limit other than the NIC's ended the search there
};

using SpeedupAt = std::function<double(Bandwidth)>;

// Returns the speed-up above which a run counts as faster. It is 1, or 1.001 if `speedup` stays
// within 0.1 % of 1 from half to twice the bandwidth at which it crosses 1, since its sign there is
// due to rounding.
double break_even_level(const SpeedupAt& speedup);

// Finds the bandwidth at which `speedup` crosses `level`. Precondition: it crosses at most once
// between 100 Mbit/s and `fastest`.
PayingBandwidth break_even(const SpeedupAt& speedup, double level,
                           Bandwidth fastest = Bandwidth(1e13 / 8));

// Finds the break-even of a question, with the speed-up RunForecast::speedup_vs_baseline relative
// to the plain optimizer with an all-reduce.
PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog, CollectiveCosts& costs,
                           Bandwidth fastest);

// Limits of a run other than the rate of the NIC: TCP streams of NCCL (stream_limit.h), and the
// path from a GPU to its NIC (gpu_way_limit.h).
enum class NicLimit { streams, gpu_way };

// Returns the NIC bandwidth above which this limit keeps the plain run from becoming faster;
// nothing if something else limits it. `plain`: the question is the plain run itself.
std::optional<Bandwidth> held_back_beyond(const WhatIf& asked, bool plain, NicLimit limit,
                                          Catalog& catalog, CollectiveCosts& costs);

// Returns the largest bandwidth at which a break-even is meaningful. Beyond a limit of NicLimit the
// plain run does not become faster, and the curve depends on an assumed limit.
Bandwidth fastest_of_use(const WhatIf& asked, Catalog& catalog, CollectiveCosts& costs);

// Returns the question with NICs of another bandwidth. Raises a stated name plate to that
// bandwidth, so that no point of a scan is rejected because of it.
WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic);

}  // namespace lambcast
