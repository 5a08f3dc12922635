// Sources of a collective's time: the numbers used by the call, out of those from which
// topologies/cluster.h builds its machine and transport (machines_of, transport_of). A number added
// there must be added here: "numeric inputs" in experiments_test finds numbers that change a
// forecast without being named.
//
// A call that lasts T keeps the links of its busiest GPU busy for l and the NICs of its busiest
// node busy for n, each at the rate that the library reaches. Rates determine w = min(T, max(l,
// n)); latencies determine the remaining T - w. Links or NICs that are busy for less than half of w
// determine nothing: T would be the same if they were twice as slow.
#pragma once

#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"

namespace lambcast {

// Adds the sources of a call. `cost` is its price; `spent` is the time that the operation waits for
// all such calls.
void read_sources(const Call& call, const CollectiveCost& cost, Duration spent,
                  const Cluster& cluster, CostSources& sources);

}  // namespace lambcast
