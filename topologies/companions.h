// Latencies that a description leaves out and derives from one that it states.
//
// In a file, a protocol's base, local_hop and network_hop also apply to trees and to a single node
// unless tree_* and alone_* are given. If an override changes one of the three, the latencies of
// trees keep their ratio to it, and those of a single node stay. So a small override has a small
// effect on a forecast.
#pragma once

#include "sim/base/overrides.h"
#include "topologies/cluster.h"

namespace lambcast {

// Keeps these ratios in `after`, the description with the overrides; `before` is the one without
// them.
void keep_companions(const Cluster& before, const Overrides& overrides, Cluster& after);

}  // namespace lambcast
