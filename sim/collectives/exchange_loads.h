// Loads of the links in an exchange in which every rank sends one message to each other at once.
//
// Messages are alike, so the links are counted instead of the n (n - 1) flows. Nodes with the same
// number of ranks load their own links alike. A leaf that holds S senders loads its uplink to a
// spine with S times the receivers elsewhere whose ports that spine serves, and the downlink from
// it with the senders elsewhere for each such receiver here. Leaves and nodes need not be full.
#pragma once

#include <vector>

#include "sim/collectives/process_group.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// The most loaded link of each role (Topology::role) that messages within a node cross, and those
// between nodes.
struct ExchangeLoads {
  std::vector<FlowLoads::OnLink> local, crossing;
};

// `machine` is folded; one part of it is enough. Messages leave a node by the NIC of their
// receiver's rail if `by_rail_of_receiver`, else by that of their sender.
ExchangeLoads exchange_loads(const ProcessGroup& group, const Machine& machine, Endpoint endpoint,
                             Router& router, bool by_rail_of_receiver);

}  // namespace lambcast
