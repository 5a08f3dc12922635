#include "models/training/price/peer_groups.h"

#include <algorithm>
#include <map>
#include <set>

namespace lambcast {

std::vector<std::vector<int>> nodes_by_stage(const parallel::RankGrid& grid) {
  const auto stages = static_cast<std::size_t>(grid.size(parallel::Axis::pp));
  std::vector<std::map<int, std::vector<int>>> slots(stages);  // by node
  for (int rank = 0; rank < grid.ranks(); ++rank) {
    const int stage =
        parallel::coordinates_of(grid, rank)[static_cast<std::size_t>(parallel::Axis::pp)];
    slots[static_cast<std::size_t>(stage)][rank / grid.gpus_per_node].push_back(rank %
                                                                                grid.gpus_per_node);
  }
  std::vector<std::vector<int>> nodes(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const std::vector<int>& first = slots[stage].begin()->second;
    if (std::ranges::any_of(slots[stage], [&](const auto& on) { return on.second != first; }))
      continue;
    for (const auto& [node, on] : slots[stage]) nodes[stage].push_back(node);
  }
  return nodes;
}

std::vector<int> peer_distances(const ProcessGroup& group, int first,
                                const std::vector<int>& nodes) {
  std::vector<int> distances{0};
  std::set<int> left(nodes.begin(), nodes.end());
  const auto cover = [&](int from) {
    for (int i = 0; i < group.nodes(); ++i) left.erase(from + i * group.node_stride);
  };
  cover(first);
  while (!left.empty()) {
    const int next = *left.begin();
    distances.push_back(next - first);
    cover(next);
  }
  return distances;
}

}  // namespace lambcast
