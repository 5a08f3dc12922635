// A cluster ready for collectives: its topology and the endpoints of each rank in it.
//
// A machine is written in full or *folded*: one part then stands for all parts that are alike. A
// part is a node under a single switch, or the nodes of a full leaf in a leaf-spine fabric.
//
// If all parts do the same, one is written. A flow that leaves it turns back at the switch or spine
// that it would cross, and enters again at the image of its target. Every link is then loaded
// exactly as in the full machine, if a part receives from others as much as its images send. If
// parts do different things, one part of each kind is written. Flows that leave it end at that
// switch, and flows that enter it begin there. Oversubscription of the fabric is kept.
//
// The last part may be smaller than the others if an algorithm permits it (algorithms.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/network/topology.h"

namespace lambcast {

// How the components of one node are joined. All bandwidths are effective, per direction.
struct NodeSpec {
  int gpus = 1;
  int nics = 1;
  Bandwidth gpu_link;       // between a GPU and its peers: NVLink, or its PCIe slot
  bool pcie_peers = false;  // peers communicate over PCIe, which NIC traffic then shares
  Bandwidth gpu_nic;        // between a GPU and the NICs over PCIe, unless pcie_peers
  Bandwidth nic;            // rate of one NIC; more NICs than GPUs are bundled, one bundle per GPU
  Bandwidth host_link;      // between the processes of a node, through host memory
  bool operator==(const NodeSpec&) const = default;
};

struct Machine {
  Topology topology;
  int nodes = 1;          // nodes of the cluster, also if folded
  int written = 1;        // nodes written; fewer if folded
  int part = 1;           // nodes of a part
  int gpus_per_node = 1;  // ranks are placed node by node
  int nics_per_node = 1;
  bool folded = false;
  std::vector<VertexId> gpu;        // [node * gpus_per_node + i], for the nodes written
  std::vector<VertexId> host;       // [node * gpus_per_node + i]: memory that stages rank i
  std::vector<VertexId> nic;        // [node * nics_per_node + j]
  std::vector<std::uint32_t> port;  // switch port of nic[...]; spreads the routes to it
  std::vector<VertexId> leaf;       // switch of nic[...]
  std::vector<VertexId> turns;      // switches at which flows that leave a folded part turn back
};

// Joins the NICs of all written nodes, given the machine with its nodes wired. Sets Machine::turns
// if the machine can be folded, and `port` and `leaf` if several paths lead to a NIC.
using Fabric = std::function<void(Machine&, const NodeSpec&)>;

// One non-blocking switch: every NIC runs at its full rate.
void single_switch(Machine& machine, const NodeSpec& node);

std::shared_ptr<const Machine> build_machine(const NodeSpec& node, int nodes, const Fabric& fabric);
// Builds a folded machine: `parts` parts of `part` nodes are written. The fabric must treat all
// parts alike.
std::shared_ptr<const Machine> build_folded_machine(const NodeSpec& node, int nodes, int part,
                                                    int parts, const Fabric& fabric);

}  // namespace lambcast
