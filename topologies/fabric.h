// Switch fabrics between nodes. Each builder joins the NICs of a machine whose nodes are wired;
// every NIC runs at the node's NIC rate, switch ports at the rates that follow from it.
//
//   single_switch   one crossbar; blocks nothing
//   fat_tree        leaves of `nodes_per_leaf` nodes, as many spines as keep the uplinks of a leaf
//   at
//                   1/oversubscription of its downlinks
//   rail_optimised  NIC i of every node on leaf i of its group, spines as above
//   torus           a switch per node, links to its neighbours in each dimension
//   dragonfly       a router per `nodes_per_leaf` nodes, routers of a group all joined, each group
//                   joined to every other
#pragma once

#include "sim/network/machine.h"
#include "topologies/cluster.h"

namespace lambcast {

Fabric make_fabric(const FabricSpec& spec);

// Whether every node sees the same fabric and is never blocked by it, so that machines may be
// folded.
bool blocks_nothing(const FabricSpec& spec);

}  // namespace lambcast
