// The builders behind make_schedule(), one file per family. Each fills send_sets and rounds; the
// caller has checked that the operation and layout are supported and that there are two ranks.
#pragma once

#include <algorithm>
#include <utility>

#include "sim/collectives/schedule.h"

namespace lambcast::builders {

void ring(Schedule& schedule, Bytes size, const Layout& layout);
void tree(Schedule& schedule, Bytes size, const Layout& layout);
void in_switch(Schedule& schedule, Bytes size, const Layout& layout);
void hierarchical(Schedule& schedule, Bytes size, const Layout& layout);
void recursive_doubling(Schedule& schedule, Bytes size, const Layout& layout);
void halving_doubling(Schedule& schedule, Bytes size, const Layout& layout);
void neighbor_exchange(Schedule& schedule, Bytes size, const Layout& layout);
void pairwise(Schedule& schedule, Bytes size, const Layout& layout);
void linear(Schedule& schedule, Bytes size, const Layout& layout);
void bruck(Schedule& schedule, Bytes size, const Layout& layout);
void deepspeed_gather(Schedule& schedule, Bytes size, const Layout& layout);
void shift(Schedule& schedule, Bytes size, const Layout& layout);
void binomial(Schedule& schedule, Bytes size, const Layout& layout);

// Appends a send set and returns its index.
inline std::size_t add_sends(Schedule& schedule, std::vector<Send> sends) {
  schedule.send_sets.push_back(std::move(sends));
  return schedule.send_sets.size() - 1;
}

// The local rank next to NIC `rail`, for a node with `ranks` ranks in use.
inline int rank_near_nic(int rail, int nics, int ranks) { return rail * ranks / nics; }

// NICs that a collective over these ranks can keep busy.
inline int rails(const Layout& layout) {
  return layout.nodes() > 1 ? std::min(layout.nics_per_node, layout.gpus_per_node) : 1;
}

}  // namespace lambcast::builders
