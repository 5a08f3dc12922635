// Sources of a collective's time: the numbers from which topologies/cluster.h builds its machine
// and transport (machines_of, transport_of), as far as the call uses them. A number added there
// must be added here: "numeric inputs" in experiments_test finds numbers that change a forecast
// without being named.
//
// A call of time T keeps the links of its busiest GPU busy for l and the NICs of its busiest node
// for n, each at the rate that the library reaches. Rates determine w = min(T, max(l, n)),
// latencies the rest, T - w. Of links and NICs the one that is busy for less than half of w
// determines nothing: it would not if it were twice as slow.
#pragma once

#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"

namespace lambcast {

// `cost`: what the call was priced at, by which algorithm and protocol. `spent`: the time of all
// such calls that the operation waits for.
void read_sources(const Call& call, const CollectiveCost& cost, Duration spent,
                  const Cluster& cluster, CostSources& sources);

}  // namespace lambcast
