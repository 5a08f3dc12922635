#include "sim/collectives/double_tree.h"

#include <algorithm>
#include <cstddef>
#include <map>

namespace lambcast {
namespace {

// The parent of `node` in the first tree over `nodes`, -1 for the root.
int parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

// What the links of a part carry, by the place of a node in its part: what that node sends and
// receives; what goes up to, and comes down from, others by the port of that place.
class Loads {
 public:
  Loads(int parts, int part)
      : part_(static_cast<std::size_t>(part)),
        of_(static_cast<std::size_t>(parts), std::vector<int>(4 * part_)) {}

  void add(int from, int to) {
    const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
    std::vector<int>& out = of_[source / part_];
    std::vector<int>& in = of_[target / part_];
    ++out[source % part_];
    ++in[part_ + target % part_];
    if (&out == &in) return;
    ++out[2 * part_ + target % part_];
    ++in[3 * part_ + target % part_];
  }

  // The first part of each kind.
  std::map<std::vector<int>, int> kinds() const {
    std::map<std::vector<int>, int> first;
    for (std::size_t i = 0; i < of_.size(); ++i) first.try_emplace(of_[i], static_cast<int>(i));
    return first;
  }

 private:
  std::size_t part_;
  std::vector<std::vector<int>> of_;
};

bool exceeds_nowhere(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::equal(a, b, [](int x, int y) { return x <= y; });
}

}  // namespace

std::vector<TreeEdge> edges_of_both_trees(int nodes) {
  std::vector<TreeEdge> edges;
  for (int node = 1; node < nodes; ++node) {
    const int up = parent(node, nodes);
    edges.push_back({node, up});
    if (nodes % 2 == 0)
      edges.push_back({nodes - 1 - node, nodes - 1 - up});
    else
      edges.push_back({(node + 1) % nodes, (up + 1) % nodes});
  }
  return edges;
}

std::vector<int> busiest_parts(int nodes, int part) {
  Loads loads(nodes / part, part);
  for (const TreeEdge& edge : edges_of_both_trees(nodes)) {
    loads.add(edge.child, edge.parent);
    loads.add(edge.parent, edge.child);
  }
  const auto kinds = loads.kinds();
  std::vector<int> parts;
  for (const auto& kind : kinds) {
    const bool exceeded = std::ranges::any_of(kinds, [&](const auto& other) {
      return other.second != kind.second && exceeds_nowhere(kind.first, other.first);
    });
    if (!exceeded) parts.push_back(kind.second);
  }
  std::ranges::sort(parts);
  return parts;
}

}  // namespace lambcast
