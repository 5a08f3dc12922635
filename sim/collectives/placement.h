// A process group placed on a machine: the nodes, slots and NICs that its members use.
//
// A member's own NIC is the one next to its slot. A group uses as many rails as its members on a
// node have NICs. A data-parallel group with one member per node uses one: with eight NICs, each of
// eight sibling groups uses a NIC of its own; with one NIC, all share it.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sim/collectives/process_group.h"

namespace lambcast {

struct Machine;

// Node and slot of the first member of the first sibling.
struct Place {
  int node = 0;
  int slot = 0;

  auto operator<=>(const Place&) const = default;
};

// A group with the properties of its machine that affect a schedule.
struct Placement : ProcessGroup {
  int nics = 1;               // NICs that the members on one node use
  double groups_per_nic = 1;  // siblings that share a NIC
  // If folded, only the sends of the first `written` nodes are stored, in parts of `part` nodes
  // each; they represent the sends of all nodes (see machine.h). Otherwise all nodes are written.
  bool folded = false;
  int written = 1;
  int part = 1;
  bool full_parts = true;  // all parts of the group are full
  // Messages leave a node through the NIC of their receiver's rail and the GPU next to it, instead
  // of the NIC of their sender's rail (NCCL's PXN).
  bool by_rail_of_receiver = false;
  // Number of the uplink that flows between parts use, for each node of a part, sibling and NIC, in
  // that order. Nodes that share an uplink have the same number. Empty if not folded.
  std::vector<std::uint32_t> uplinks{};

  // Returns the number of ranks whose sends are stored.
  int senders() const { return folded ? written * per_node : ranks; }
};

Placement placed(const ProcessGroup& group, const Machine& machine, const Place& place = {});

// Returns the NIC next to a slot, counted within the node.
int nic_next_to(const Machine& machine, int slot);

// Returns the NICs next to the ranks of sibling group `sibling` on one node, without duplicates.
std::vector<int> nics_of(const ProcessGroup& group, const Machine& machine, const Place& place,
                         int sibling);

}  // namespace lambcast
