#include "sim/network/machine.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast {
namespace {

// Peers communicate over one bus (NVSwitch or the PCIe root). NICs are attached to the PCIe root:
// the same bus if peers use PCIe, a hop further away if they use NVLink. Processes communicate
// through host memory, which the NICs reach as well.
void wire_node(Machine& machine, const NodeSpec& spec, int node, int nics, Bandwidth nic_rate) {
  Topology& topology = machine.topology;
  const VertexId peers = topology.add_vertex({VertexKind::bus, node, 0});
  const VertexId root = spec.pcie_peers ? peers : topology.add_vertex({VertexKind::bus, node, 1});
  const VertexId memory = topology.add_vertex({VertexKind::bus, node, 2});
  for (int i = 0; i < spec.gpus; ++i) {
    const VertexId gpu = topology.add_vertex({VertexKind::gpu, node, i});
    topology.add_duplex(gpu, peers, spec.gpu_link, LinkKind::local);
    if (!spec.pcie_peers) {
      const VertexId slot = topology.add_vertex({VertexKind::slot, node, i});
      topology.add_duplex(gpu, slot, spec.gpu_nic, LinkKind::local);
      topology.add_duplex(slot, root, spec.gpu_nic, LinkKind::local);
    }
    const VertexId host = topology.add_vertex({VertexKind::host, node, i});
    topology.add_duplex(host, memory, spec.host_link, LinkKind::local);
    machine.gpu.push_back(gpu);
    machine.host.push_back(host);
  }
  for (int j = 0; j < nics; ++j) {
    const VertexId nic = topology.add_vertex({VertexKind::nic, node, j});
    topology.add_duplex(nic, root, nic_rate, LinkKind::local);
    topology.add_duplex(nic, memory, nic_rate, LinkKind::local);
    machine.nic.push_back(nic);
    machine.port.push_back(0);
    machine.leaf.push_back(0);
  }
}

std::shared_ptr<const Machine> build(const NodeSpec& node, int nodes, int part, int parts,
                                     bool folded, const Fabric& fabric) {
  const int written = part * parts;
  LAMBCAST_CHECK(written > 0 && node.gpus > 0 && node.nics > 0, "an empty machine");
  auto owned = std::make_shared<Machine>();
  Machine& machine = *owned;
  machine.nodes = nodes;
  machine.written = written;
  machine.part = part;
  machine.gpus_per_node = node.gpus;
  machine.nics_per_node = std::min(node.nics, node.gpus);
  machine.folded = folded;
  const double bundle = static_cast<double>(node.nics) / machine.nics_per_node;
  // Upper bounds of the vertices and links that wire_node() adds, plus a switch.
  const auto gpus = static_cast<std::size_t>(node.gpus);
  const auto nics = static_cast<std::size_t>(machine.nics_per_node);
  machine.topology.reserve(static_cast<std::size_t>(written) * (3 + 3 * gpus + nics) + 1,
                           static_cast<std::size_t>(written) * 2 * (4 * gpus + 3 * nics));
  for (int i = 0; i < written; ++i)
    wire_node(machine, node, i, machine.nics_per_node, node.nic * bundle);
  fabric(machine, node);
  return owned;
}

}  // namespace

void single_switch(Machine& machine, const NodeSpec& node) {
  const VertexId fabric = machine.topology.add_vertex({VertexKind::fabric, -1, 0});
  machine.turns = {fabric};
  const double bundle = std::max(1.0, static_cast<double>(node.nics) / node.gpus);
  for (const VertexId nic : machine.nic)
    machine.topology.add_duplex(nic, fabric, node.nic * bundle, LinkKind::network);
}

std::shared_ptr<const Machine> build_machine(const NodeSpec& node, int nodes,
                                             const Fabric& fabric) {
  return build(node, nodes, nodes, 1, false, fabric);
}

std::shared_ptr<const Machine> build_folded_machine(const NodeSpec& node, int nodes, int part,
                                                    int parts, const Fabric& fabric) {
  LAMBCAST_CHECK(part * parts <= nodes, "{} nodes have no {} parts of {}", nodes, parts, part);
  auto machine = build(node, nodes, part, parts, true, fabric);
  LAMBCAST_CHECK(!machine->turns.empty(), "a fabric that cannot be folded");
  return machine;
}

}  // namespace lambcast
