// Switch fabrics between nodes. Each builder joins the NICs of a machine whose nodes are wired;
// every NIC runs at the node's NIC rate, switch ports at the rates that follow from it.
//
//   single_switch   one non-blocking crossbar
//   fat_tree        leaves of `nodes_per_leaf` nodes, with one uplink to each spine. There are as
//                   many spines as possible with no uplink slower than a NIC and all uplinks
//                   together at 1/oversubscription of the leaf's downlinks
//   rail_optimised  NIC i of every node on leaf i of its group, spines as above
//   torus           a switch per node, links to its neighbours in each dimension
//   dragonfly       a router per `nodes_per_leaf` nodes, all routers of a group joined, each group
//                   joined to every other
//
// Routes are static: the path to a NIC depends on its switch port (d-mod-k), so that at an
// oversubscription of 1 every NIC of a leaf has a spine of its own. Full leaves then never block;
// if the last leaf is not full, the uplinks of the others are loaded unevenly.
#pragma once

#include "sim/network/machine.h"
#include "topologies/cluster.h"

namespace lambcast {

Fabric make_fabric(const FabricSpec& spec);

// Returns the number of nodes of a part of a folded machine (sim/network/machine.h): one if all
// `nodes` are on one switch; the nodes of a leaf if there are several leaves, of which the last one
// may be partly filled. Returns zero if no two nodes are equivalent.
int nodes_alike(const FabricSpec& spec, int nodes);

}  // namespace lambcast
