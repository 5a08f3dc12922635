#include "topologies/fabric.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/base/error.h"

namespace lambcast {
namespace {

Bandwidth nic_rate(const Machine& machine, const NodeSpec& node) {
  return node.nic * (static_cast<double>(node.nics) / machine.nics_per_node);
}

VertexId add_switch(Machine& machine, int index) {
  return machine.topology.add_vertex({VertexKind::fabric, -1, index});
}

void attach(Machine& machine, std::size_t nic, VertexId to, Bandwidth rate) {
  machine.port[nic] = machine.topology.out_degree(to);
  machine.leaf[nic] = to;
  machine.topology.add_duplex(machine.nic[nic], to, rate, LinkKind::network);
}

// Joins leaves through spines, one uplink to each. The uplinks of a leaf together have the rate of
// its `ports` downlinks, divided by the oversubscription. No uplink is slower than a port unless
// there is only one: a single flow gets the NIC's rate. If the machine is folded, flows to another
// leaf turn back at the spine that they would cross.
void add_spines(Machine& machine, const std::vector<VertexId>& leaves, int ports, Bandwidth rate,
                double oversubscription) {
  const int spines = std::max(1, static_cast<int>(ports / oversubscription));
  const Bandwidth uplink = rate * (ports / oversubscription / spines);
  for (int i = 0; i < spines; ++i) {
    const VertexId spine = add_switch(machine, static_cast<int>(leaves.size()) + i);
    for (const VertexId leaf : leaves)
      machine.topology.add_duplex(leaf, spine, uplink, LinkKind::network);
    machine.turns.push_back(spine);
  }
}

void fat_tree(Machine& machine, const NodeSpec& node, const FabricSpec& spec) {
  const Bandwidth rate = nic_rate(machine, node);
  const std::size_t per_leaf = static_cast<std::size_t>(spec.nodes_per_leaf) *
                               static_cast<std::size_t>(machine.nics_per_node);
  std::vector<VertexId> leaves;
  for (std::size_t nic = 0; nic < machine.nic.size(); ++nic) {
    if (nic % per_leaf == 0) leaves.push_back(add_switch(machine, static_cast<int>(leaves.size())));
    attach(machine, nic, leaves.back(), rate);
  }
  if (machine.nodes <= spec.nodes_per_leaf)
    machine.turns = leaves;
  else
    add_spines(machine, leaves, static_cast<int>(per_leaf), rate, spec.oversubscription.value);
}

void rail_optimised(Machine& machine, const NodeSpec& node, const FabricSpec& spec) {
  const Bandwidth rate = nic_rate(machine, node);
  const int rails = machine.nics_per_node;
  std::vector<VertexId> leaves;
  for (int first = 0; first < machine.written; first += spec.nodes_per_leaf) {
    const int last = std::min(machine.written, first + spec.nodes_per_leaf);
    for (int rail = 0; rail < rails; ++rail) {
      leaves.push_back(add_switch(machine, static_cast<int>(leaves.size())));
      for (int i = first; i < last; ++i)
        attach(machine, static_cast<std::size_t>(i * rails + rail), leaves.back(), rate);
    }
  }
  if (rails > 1 || machine.nodes > spec.nodes_per_leaf)
    add_spines(machine, leaves, spec.nodes_per_leaf, rate, spec.oversubscription.value);
}

void torus(Machine& machine, const NodeSpec& node, const FabricSpec& spec) {
  int places = 1;
  for (const int length : spec.dimensions) places *= length;
  if (places < machine.nodes)
    fail_input({"", 0, "fabric.dimensions"},
               fmt::format("a torus of {} places cannot hold {} nodes", places, machine.nodes));
  const Bandwidth rate = nic_rate(machine, node);
  std::vector<VertexId> routers;
  for (int place = 0; place < places; ++place) routers.push_back(add_switch(machine, place));
  for (std::size_t nic = 0; nic < machine.nic.size(); ++nic)
    attach(machine, nic, routers[nic / static_cast<std::size_t>(machine.nics_per_node)], rate);
  int stride = 1;
  for (const int length : spec.dimensions) {
    for (int place = 0; place < places && length > 1; ++place) {
      const int at = place / stride % length;
      if (length == 2 && at == 1) continue;  // two switches have one cable between them, not two
      const int next = place + ((at + 1) % length - at) * stride;
      machine.topology.add_duplex(routers[static_cast<std::size_t>(place)],
                                  routers[static_cast<std::size_t>(next)],
                                  rate * machine.nics_per_node, LinkKind::network);
    }
    stride *= length;
  }
}

void dragonfly(Machine& machine, const NodeSpec& node, const FabricSpec& spec) {
  const Bandwidth rate = nic_rate(machine, node);
  const std::size_t per_router = static_cast<std::size_t>(spec.nodes_per_leaf) *
                                 static_cast<std::size_t>(machine.nics_per_node);
  std::vector<VertexId> routers;
  for (std::size_t nic = 0; nic < machine.nic.size(); ++nic) {
    if (nic % per_router == 0)
      routers.push_back(add_switch(machine, static_cast<int>(routers.size())));
    attach(machine, nic, routers.back(), rate);
  }
  // Routers are added until the last group is full, since otherwise some pair of groups would have
  // no cable.
  const auto group_size = static_cast<std::size_t>(spec.routers_per_group);
  while (routers.size() % group_size != 0)
    routers.push_back(add_switch(machine, static_cast<int>(routers.size())));
  const Bandwidth cable = rate * (static_cast<double>(per_router) / spec.oversubscription.value);
  for (std::size_t a = 0; a < routers.size(); ++a) {
    for (std::size_t b = a + 1; b < routers.size(); ++b) {
      const std::size_t group_a = a / group_size, group_b = b / group_size;
      // Each pair of groups is joined by one cable. The cables of a group are spread over its
      // routers.
      const bool joined = group_a == group_b || (a % group_size == group_b % group_size &&
                                                 b % group_size == group_a % group_size);
      if (joined) machine.topology.add_duplex(routers[a], routers[b], cable, LinkKind::network);
    }
  }
}

}  // namespace

Fabric make_fabric(const FabricSpec& spec) {
  switch (spec.kind) {
    case FabricKind::single_switch:
      return single_switch;
    case FabricKind::fat_tree:
      return [spec](Machine& m, const NodeSpec& n) { fat_tree(m, n, spec); };
    case FabricKind::rail_optimised:
      return [spec](Machine& m, const NodeSpec& n) { rail_optimised(m, n, spec); };
    case FabricKind::torus:
      return [spec](Machine& m, const NodeSpec& n) { torus(m, n, spec); };
    case FabricKind::dragonfly:
      return [spec](Machine& m, const NodeSpec& n) { dragonfly(m, n, spec); };
  }
  return single_switch;
}

int nodes_alike(const FabricSpec& spec, int nodes) {
  switch (spec.kind) {
    case FabricKind::single_switch:
      return 1;
    case FabricKind::fat_tree:
      if (nodes <= spec.nodes_per_leaf) return 1;
      [[fallthrough]];
    case FabricKind::rail_optimised:
      return nodes > spec.nodes_per_leaf ? spec.nodes_per_leaf : 0;
    case FabricKind::torus:
    case FabricKind::dragonfly:
      break;  // cables differ in order at every router, and so do routes of equal length
  }
  return 0;
}

}  // namespace lambcast
