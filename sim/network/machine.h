// A cluster ready for collectives: its topology and where each rank's endpoints lie in it.
//
// A machine can be written out in full, or *folded*: where its parts are alike, some stand for all.
// A part is a node under one switch, the nodes of a full leaf under leaves and spines. Where all
// parts do the same, one is written: a flow that leaves it comes back in where its target's image
// is, over the switch or the spine that it would take; that loads every link exactly as in the full
// machine, where what a part receives from elsewhere equals what its images send. Where parts do
// several things, one of each kind is written, and a flow that leaves it ends at that switch, as
// one that comes in begins there. What the fabric blocks, it blocks here as well.
//
// The last part may be smaller than the others, where an algorithm permits it (algorithms.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/network/topology.h"

namespace lambcast {

// How the parts of one node are joined. All bandwidths are effective, per direction.
struct NodeSpec {
  int gpus = 1;
  int nics = 1;
  Bandwidth gpu_link;       // a GPU's way to its peers: NVLink, or its PCIe slot
  bool pcie_peers = false;  // peers are reached over PCIe, which NIC traffic then shares
  Bandwidth gpu_nic;        // a GPU's PCIe way to the NICs, where peers are not reached over PCIe
  Bandwidth nic;            // one NIC; more NICs than GPUs are written as bundles, one per GPU
  Bandwidth host_link;      // a process's way through host memory to its node's other processes
  bool operator==(const NodeSpec&) const = default;
};

struct Machine {
  Topology topology;
  int nodes = 1;          // of the cluster, also when folded
  int written = 1;        // of those; fewer when folded,
  int part = 1;           // and so many to a part
  int gpus_per_node = 1;  // ranks are placed node by node
  int nics_per_node = 1;
  bool folded = false;
  std::vector<VertexId> gpu;        // [node * gpus_per_node + i], of those written
  std::vector<VertexId> host;       // [node * gpus_per_node + i]: the memory that stages rank i
  std::vector<VertexId> nic;        // [node * nics_per_node + j]
  std::vector<std::uint32_t> port;  // of the switch that nic[...] hangs on: spreads routes to it
  std::vector<VertexId> leaf;       // that switch
  std::vector<VertexId> turns;      // switches at which what leaves a folded part turns back
};

// Joins the NICs of all nodes written; given the machine with its nodes wired, sets Machine::turns
// where it can be folded and, where several ways lead to a NIC, its port and leaf.
using Fabric = std::function<void(Machine&, const NodeSpec&)>;

// One switch that blocks nothing: every NIC runs at its full rate.
void single_switch(Machine& machine, const NodeSpec& node);

std::shared_ptr<const Machine> build_machine(const NodeSpec& node, int nodes, const Fabric& fabric);
// Writes `parts` parts of `part` nodes, which must be alike under the fabric.
std::shared_ptr<const Machine> build_folded_machine(const NodeSpec& node, int nodes, int part,
                                                    int parts, const Fabric& fabric);

}  // namespace lambcast
