// A process group laid on a machine: which nodes, slots and NICs its members use.
//
// A member's own NIC is the one next to its slot. A group drives as many rails as its members on a
// node have NICs: one for a data-parallel group of one member per node, each of eight such siblings
// over a NIC of its own where there are eight, all over the same where there is one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/collectives/process_group.h"

namespace lambcast {

struct Machine;

// Node and slot of the first member of the first sibling.
struct Place {
  int node = 0;
  int slot = 0;

  bool operator==(const Place&) const = default;
};

// A group, with the properties of its machine that a schedule depends on.
struct Placement : ProcessGroup {
  int nics = 1;               // that the members on one node reach
  double groups_per_nic = 1;  // siblings that meet there
  // Only the sends of its first `written` nodes are written down, of parts of `part` nodes each;
  // they stand for those of all (see machine.h). All nodes where not folded.
  bool folded = false;
  int written = 1;
  int part = 1;
  bool full_parts = true;  // all parts of the group are full
  // Messages leave a node by the NIC of their receiver's rail, over the GPU next to it, and not by
  // that of their sender (NCCL's PXN).
  bool by_rail_of_receiver = false;
  // Numbers of the uplinks by which flows between parts reach each node of a part: one per sibling
  // and NIC, node by node. Nodes that share an uplink have its number. Empty where not folded.
  std::vector<std::uint32_t> uplinks{};

  // The ranks whose sends are written down.
  int senders() const { return folded ? written * per_node : ranks; }
};

Placement placed(const ProcessGroup& group, const Machine& machine, const Place& place = {});

// The NIC next to a slot, counted within the node.
int nic_next_to(const Machine& machine, int slot);

// The NICs next to the members that one sibling has on a node, each once.
std::vector<int> nics_of(const ProcessGroup& group, const Machine& machine, const Place& place,
                         int sibling);

}  // namespace lambcast
