#include <cstdint>

#include "sim/collectives/builders.h"

namespace lambcast::builders {
namespace {

// One ring per rail visits the ranks of a node in turn and leaves the node at the rank next to the
// rail's NIC. Sends of several rings over one hop inside a node are merged; next to a send that
// leaves the node over the same link (MPI from host memory, PCIe), each ring has an equal share.
std::vector<Send> ring_sends(Bytes per_ring_total, const Placement& placement) {
  const int rings = rails(placement);
  const Bytes share = per_ring_total / rings;
  const int nodes = placement.nodes();
  std::vector<Send> sends;
  for (int node = 0; node < placement.written; ++node) {
    const int ranks = placement.ranks_on(node);
    const int first = node * placement.per_node;
    const int next_node = (node + 1) % nodes;
    std::vector<int> leaving(static_cast<std::size_t>(ranks));
    for (int rail = 0; rail < rings && nodes > 1; ++rail) {
      const int exit = rank_near_nic(rail, rings, ranks);
      const int next_ranks = placement.ranks_on(next_node);
      const int entry = (rank_near_nic(rail, rings, next_ranks) + 1) % next_ranks;
      ++leaving[static_cast<std::size_t>(exit)];
      sends.push_back({first + exit, next_node * placement.per_node + entry, share, rail});
    }
    for (int i = 0; i < ranks && ranks > 1; ++i) {
      const int staying = rings - leaving[static_cast<std::size_t>(i)];
      if (staying > 0)
        sends.push_back({first + i, first + (i + 1) % ranks, share * staying, Send::own_rail,
                         static_cast<std::uint32_t>(staying)});
    }
  }
  return sends;
}

}  // namespace

void ring(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int n = placement.ranks;
  const int nodes = placement.nodes();
  const int lanes = nodes > 1 ? rails(placement) : placement.per_node;
  if (schedule.op == Op::broadcast || schedule.op == Op::reduce) {
    // A streaming chain through all ranks, from the root or to it: every edge carries S, and the
    // last rank waits for all hops.
    const std::size_t sends = add_sends(schedule, ring_sends(size, placement));
    schedule.rounds.push_back(
        {sends, 1, n - nodes, nodes - 1, 0, Pace::streaming, size / lanes, size});
    schedule.traffic = {size * (n - 1.0) / n, size * (nodes - 1.0) / nodes};  // a chain, not a loop
    return;
  }
  const int passes = schedule.op == Op::all_reduce ? 2 : 1;
  const std::size_t sends = add_sends(schedule, ring_sends(size / n, placement));
  const std::int64_t rounds = passes * (n - 1);
  const std::int64_t network_hops = passes * (nodes - 1);
  schedule.rounds.push_back({sends, rounds, rounds - network_hops, network_hops, 0, Pace::rotating,
                             size / n / lanes, size / n});
}

}  // namespace lambcast::builders
