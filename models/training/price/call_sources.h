// Sources of a collective's time: the numbers from which topologies/cluster.h builds its machine
// and transport (machines_of, transport_of), as far as the call uses them. A number added there
// must be added here: "numeric inputs" in experiments_test finds numbers that change a forecast
// without being named.
#pragma once

#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"

namespace lambcast {

// `cost`: what the call was priced at, by which algorithm and protocol.
void read_sources(const Call& call, const CollectiveCost& cost, const Cluster& cluster,
                  CostSources& sources);

}  // namespace lambcast
