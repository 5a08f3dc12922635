#include "sim/collectives/builders.h"

namespace lambcast::builders {

// Pipelined in chunks, the three phases use different links at the same time. Inside the node every
// rank passes on S (p-1)/p twice (reduce-scatter and all-gather over p ranks); between nodes its
// share of S/p goes twice around the ring of N nodes.
void hierarchical(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int local = placement.per_node;
  const int nodes = placement.nodes();
  const Bytes inside = size * (2.0 * (local - 1) / local);
  const Bytes between = size / local * (2.0 * (nodes - 1) / nodes);
  std::vector<Send> sends;
  for (int rank = 0; rank < placement.senders(); ++rank) {
    const int first = placement.node_of(rank) * local;
    if (local > 1) sends.push_back({rank, first + (rank - first + 1) % local, inside});
    if (nodes > 1) sends.push_back({rank, (rank + local) % placement.ranks, between});
  }
  schedule.rounds.push_back(
      {add_sends(schedule, std::move(sends)), 1, 2 * (local - 1), 2 * (nodes - 1)});
}

}  // namespace lambcast::builders
