// Link loads of an exchange in which every rank sends one message to every other rank at once.
//
// All messages are equal, so links are counted instead of the n (n - 1) flows. Nodes with the same
// number of ranks load their own links equally. In a leaf with S senders, the uplink to a spine has
// S messages for each receiver in other leaves whose port that spine serves. The downlink from the
// spine has, for each such receiver in this leaf, one message per sender of the other leaves.
// Leaves and nodes need not be full.
#pragma once

#include <vector>

#include "sim/collectives/process_group.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// The most loaded links of each role (Topology::role), for messages within a node and between
// nodes.
struct ExchangeLoads {
  std::vector<FlowLoads::OnLink> local, crossing;
};

// `machine` must be folded; one written part is enough. With `by_rail_of_receiver`, messages leave
// a node through the NIC of their receiver's rail, otherwise of their sender's.
ExchangeLoads exchange_loads(const ProcessGroup& group, const Machine& machine, Endpoint endpoint,
                             Router& router, bool by_rail_of_receiver);

}  // namespace lambcast
