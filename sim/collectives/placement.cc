#include "sim/collectives/placement.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "sim/network/machine.h"

namespace lambcast {
namespace {

// Returns the uplinks. An uplink leads from the leaf of a NIC to the spine of its port (machine.h).
std::vector<std::uint32_t> find_uplinks(const ProcessGroup& group, const Machine& machine,
                                        const Place& place) {
  if (!machine.folded) return {};
  std::map<std::pair<VertexId, std::size_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> uplinks;
  for (int node = 0; node < machine.part; node += group.node_stride)
    for (int sibling = 0; sibling < group.siblings; ++sibling)
      for (const int nic : nics_of(group, machine, place, sibling)) {
        const auto at = static_cast<std::size_t>(node * machine.nics_per_node + nic);
        const std::pair uplink(machine.leaf[at], machine.port[at] % machine.turns.size());
        uplinks.push_back(
            numbers.try_emplace(uplink, static_cast<std::uint32_t>(numbers.size())).first->second);
      }
  return uplinks;
}

}  // namespace

Placement placed(const ProcessGroup& group, const Machine& machine, const Place& place) {
  std::set<int> reached;
  std::size_t reached_by_each = 0;
  for (int sibling = 0; sibling < group.siblings; ++sibling) {
    const std::vector<int> nics = nics_of(group, machine, place, sibling);
    reached.insert(nics.begin(), nics.end());
    reached_by_each += nics.size();
  }
  const auto nics = static_cast<int>(nics_of(group, machine, place, 0).size());
  const auto of_group = [&](int nodes) {
    return machine.folded ? std::max(1, nodes / group.node_stride) : group.nodes();
  };
  return {group,
          nics,
          static_cast<double>(reached_by_each) / static_cast<double>(reached.size()),
          machine.folded,
          of_group(machine.written),
          of_group(machine.part),
          group.uniform() && group.node_span() % machine.part == 0 &&
              (machine.part == 1 || machine.part % group.node_stride == 0),
          false,
          find_uplinks(group, machine, place)};
}

int nic_next_to(const Machine& machine, int slot) {
  return slot * machine.nics_per_node / machine.gpus_per_node;
}

std::vector<int> nics_of(const ProcessGroup& group, const Machine& machine, const Place& place,
                         int sibling) {
  std::vector<int> nics;
  for (int i = 0; i < group.per_node; ++i)
    nics.push_back(nic_next_to(machine, place.slot + group.slot_of(i, sibling)));
  nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  return nics;
}

}  // namespace lambcast
