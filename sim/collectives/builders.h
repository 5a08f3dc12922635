// The builders called by make_schedule(), one file per family. Each fills send_sets and rounds. The
// caller has checked that the operation and the group are supported and that there are at least two
// ranks.
#pragma once

#include <algorithm>
#include <utility>

#include "sim/collectives/schedule.h"

namespace lambcast::builders {

void ring(CommSchedule& schedule, Bytes size, const Placement& placement);
void tree(CommSchedule& schedule, Bytes size, const Placement& placement);
void in_switch(CommSchedule& schedule, Bytes size, const Placement& placement);
void in_switch_tree(CommSchedule& schedule, Bytes size, const Placement& placement);
void collnet_direct(CommSchedule& schedule, Bytes size, const Placement& placement);
void collnet_chain(CommSchedule& schedule, Bytes size, const Placement& placement);
void hierarchical(CommSchedule& schedule, Bytes size, const Placement& placement);
void recursive_doubling(CommSchedule& schedule, Bytes size, const Placement& placement);
void halving_doubling(CommSchedule& schedule, Bytes size, const Placement& placement);
void neighbor_exchange(CommSchedule& schedule, Bytes size, const Placement& placement);
void pairwise(CommSchedule& schedule, Bytes size, const Placement& placement);
void linear(CommSchedule& schedule, Bytes size, const Placement& placement);
void bruck(CommSchedule& schedule, Bytes size, const Placement& placement);
void deepspeed_gather(CommSchedule& schedule, Bytes size, const Placement& placement);
void shift(CommSchedule& schedule, Bytes size, const Placement& placement);
void binomial(CommSchedule& schedule, Bytes size, const Placement& placement);

// Adds chains inside a node, one per NIC, that start at the rank next to it: S up and S down. Sends
// of several chains over one hop are merged.
void add_chain(std::vector<Send>& sends, int node, Bytes size, const Placement& placement);
// Adds the sends of each NIC's share of S to the switches that reduce it, and of the sum back.
void add_in_network(std::vector<Send>& sends, Bytes size, const Placement& placement);

// Appends a send set and returns its index.
inline std::size_t add_sends(CommSchedule& schedule, std::vector<Send> sends) {
  schedule.send_sets.push_back(std::move(sends));
  return schedule.send_sets.size() - 1;
}

// Returns the local rank next to NIC `rail`, for a node with `ranks` ranks in use.
inline int rank_near_nic(int rail, int nics, int ranks) { return rail * ranks / nics; }

// Returns the number of NICs per node that a collective over these ranks can use.
inline int rails(const Placement& placement) {
  return placement.nodes() > 1 ? std::min(placement.nics, placement.per_node) : 1;
}

}  // namespace lambcast::builders
