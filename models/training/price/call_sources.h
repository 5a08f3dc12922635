// What the time of a collective rests on: the numbers that topologies/cluster.h makes its machine
// and transport of (machines_of, transport_of), as far as the call meets them. Who adds a number
// there adds it here: "numeric inputs" in experiments_test finds what moves a forecast unnamed.
#pragma once

#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"

namespace lambcast {

// `cost`: what the call was priced at, by which algorithm and protocol.
void read_sources(const Call& call, const CollectiveCost& cost, const Cluster& cluster,
                  CostSources& sources);

}  // namespace lambcast
