// Latencies that a description leaves out and that go with one that it states.
//
// In a file, a protocol's base, local_hop and network_hop stand for trees and for a single node too
// unless tree_* and alone_* say otherwise. An override of one of the three changes the machine and
// not what its author left out: those of trees keep their ratio to it, and those of a single node
// stay. So the smallest override moves a forecast the least.
#pragma once

#include "sim/base/overrides.h"
#include "topologies/cluster.h"

namespace lambcast {

// `before` is the description without the overrides that made `after` of it.
void keep_companions(const Cluster& before, const Overrides& overrides, Cluster& after);

}  // namespace lambcast
