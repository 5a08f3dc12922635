#include "sim/collectives/builders.h"

namespace lambcast::builders {

void hierarchical(Schedule& schedule, Bytes size, const Layout& layout) {
  const int local = layout.gpus_per_node;
  const int nodes = layout.nodes();
  std::vector<Send> inside, between;
  for (int rank = 0; rank < layout.senders(); ++rank) {
    const int first = layout.node_of(rank) * local;
    inside.push_back({rank, first + (rank - first + 1) % local, size / local});
    between.push_back({rank, (rank + local) % layout.ranks, size / local / nodes});
  }
  const std::size_t inside_set = add_sends(schedule, std::move(inside));
  const std::size_t between_set = add_sends(schedule, std::move(between));
  if (local > 1) schedule.rounds.push_back({inside_set, local - 1, 1, 0});
  if (nodes > 1) schedule.rounds.push_back({between_set, 2 * (nodes - 1), 0, 1});
  if (local > 1) schedule.rounds.push_back({inside_set, local - 1, 1, 0});
}

}  // namespace lambcast::builders
