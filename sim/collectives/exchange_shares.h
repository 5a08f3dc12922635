// Bandwidth of each message of an exchange in which every rank sends one to each other at once.
//
// Messages are alike, so the links are counted instead of the n (n - 1) flows. Nodes with the same
// number of ranks load their own links alike. A leaf that holds S senders loads its uplink to a
// spine with S times the receivers elsewhere whose ports that spine serves, and the downlink from
// it with the senders elsewhere for each such receiver here. Leaves and nodes need not be full.
#pragma once

#include "sim/collectives/process_group.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// The least bandwidth of a message within a node, and of one between nodes; infinite if there is
// none.
struct ExchangeShares {
  Share local, crossing;
};

// `machine` is folded; one part of it is enough. Messages leave a node by the NIC of their
// receiver's rail if `by_rail_of_receiver`, else by that of their sender.
ExchangeShares exchange_shares(const ProcessGroup& group, const Machine& machine, Endpoint endpoint,
                               Router& router, bool by_rail_of_receiver);

}  // namespace lambcast
