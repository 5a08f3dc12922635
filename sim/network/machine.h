// A cluster ready for collectives: its topology and where each rank's endpoints lie in it.
//
// A machine can be written out in full, or *folded*: when every node is like every other and the
// fabric blocks nothing, one node stands for all. A flow that leaves a node then goes out through
// the node's own NIC and comes back in through it, which loads every link exactly as in the full
// machine, where the traffic a node receives from elsewhere equals what its image sends.
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
};

struct Machine {
  Topology topology;
  int nodes = 1;          // of the cluster, also when folded
  int gpus_per_node = 1;  // ranks are placed node by node
  int nics_per_node = 1;
  bool folded = false;
  std::vector<VertexId> gpu;        // [node * gpus_per_node + i], of node 0 only when folded
  std::vector<VertexId> host;       // [node * gpus_per_node + i]: the memory that stages rank i
  std::vector<VertexId> nic;        // [node * nics_per_node + j]
  std::vector<std::uint32_t> port;  // of the switch that nic[...] hangs on: spreads routes to it
  VertexId fabric = 0;              // where a folded node loops back
};

// Joins the NICs of all nodes; given the machine with its nodes wired, sets Machine::fabric or,
// where several ways lead to a NIC, its port.
using Fabric = std::function<void(Machine&, const NodeSpec&)>;

// One switch that blocks nothing: every NIC runs at its full rate.
void single_switch(Machine& machine, const NodeSpec& node);

// Folded machines need a fabric under which all nodes are alike, such as single_switch.
std::shared_ptr<const Machine> build_machine(const NodeSpec& node, int nodes, bool folded,
                                             const Fabric& fabric);

}  // namespace lambcast
