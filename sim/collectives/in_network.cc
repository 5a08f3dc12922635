// NCCL's CollNet (src/device/all_reduce.h, src/transport/coll_net.cc): each NIC sends its share of
// the node's sum into the network. The switches add the sums of all nodes and return the total
// (SHARP). Each link carries the share once up and once down, also between leaves and spines, since
// a leaf passes on one sum. The sends written here form a ring of nodes in which every NIC sends
// its share to the next one: it loads every link the same.
#include "sim/collectives/builders.h"

namespace lambcast::builders {
namespace {

// The way up and down counts as two hops of a tree. In NCCL's own model it takes 31 us (direct) or
// 30 us (chain), and one hop of a tree 14 us.
void streaming(CommSchedule& schedule, std::vector<Send> sends, int local_hops, Bytes size,
               const Placement& placement) {
  schedule.latencies = Latencies::in_network;
  schedule.rounds.push_back({add_sends(schedule, std::move(sends)), 1, local_hops, 2, 0,
                             Pace::streaming, size / rails(placement)});
}

}  // namespace

void add_in_network(std::vector<Send>& sends, Bytes size, const Placement& placement) {
  const int lanes = rails(placement), local = placement.per_node;
  for (int node = 0; node < placement.written; ++node) {
    const int next = (node + 1) % placement.nodes();
    for (int rail = 0; rail < lanes; ++rail) {
      const int near = rank_near_nic(rail, lanes, local);
      sends.push_back({node * local + near, next * local + near, size / lanes, rail});
    }
  }
}

void collnet_direct(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int local = placement.per_node;
  std::vector<Send> sends;
  add_in_network(sends, size, placement);
  // Every rank sends each other rank its part of the data and receives its part of the sum.
  for (int rank = 0; rank < placement.senders() && local > 1; ++rank) {
    const int first = placement.node_of(rank) * local;
    sends.push_back({rank, first + (rank - first + 1) % local, size * (2.0 * (local - 1) / local)});
  }
  streaming(schedule, std::move(sends), local > 1 ? 2 : 0, size, placement);
}

void collnet_chain(CommSchedule& schedule, Bytes size, const Placement& placement) {
  std::vector<Send> sends;
  add_in_network(sends, size, placement);
  for (int node = 0; node < placement.written; ++node) add_chain(sends, node, size, placement);
  streaming(schedule, std::move(sends), 2 * (placement.per_node - 1), size, placement);
}

}  // namespace lambcast::builders
