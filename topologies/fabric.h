// Switch fabrics between nodes. Each builder joins the NICs of a machine whose nodes are wired;
// every NIC runs at the node's NIC rate, switch ports at the rates that follow from it.
//
//   single_switch   one crossbar; blocks nothing
//   fat_tree        leaves of `nodes_per_leaf` nodes, one uplink to each of as many spines as keep
//                   the uplinks of a leaf, none slower than a NIC, at 1/oversubscription of its
//                   downlinks
//   rail_optimised  NIC i of every node on leaf i of its group, spines as above
//   torus           a switch per node, links to its neighbours in each dimension
//   dragonfly       a router per `nodes_per_leaf` nodes, routers of a group all joined, each group
//                   joined to every other
//
// Routes are static: the way to a NIC depends on the port it hangs on (d-mod-k), so that at an
// oversubscription of 1 every NIC of a leaf has a spine of its own. Full leaves then block no
// exchange; where the last leaf is not full, the uplinks of the others are loaded unevenly.
#pragma once

#include "sim/network/machine.h"
#include "topologies/cluster.h"

namespace lambcast {

Fabric make_fabric(const FabricSpec& spec);

// Returns the nodes of a part of a folded machine (sim/network/machine.h): one if all `nodes` hang
// on one switch, those of a leaf if there are several leaves, of which the last may be filled in
// part. Returns zero if no nodes are alike.
int nodes_alike(const FabricSpec& spec, int nodes);

}  // namespace lambcast
