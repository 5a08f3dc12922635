#include "sim/collectives/double_tree.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>

namespace lambcast {
namespace {

// The parent of `node` in the first tree over `nodes`, -1 for the root.
int parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

// Loads of a part's links, by the place of a node in its part: traffic that the node sends and
// receives, and traffic to and from other parts through the port of that place.
class Loads {
 public:
  Loads(int parts, int part)
      : parts_(parts), part_(part), loads_(static_cast<std::size_t>(parts) * width()) {}

  void add(int from, int to) {
    const int source = from / part_, target = to / part_;
    const int out = from - source * part_, in = to - target * part_;
    ++at(source, out);
    ++at(target, part_ + in);
    if (source == target) return;
    ++at(source, 2 * part_ + in);
    ++at(target, 3 * part_ + in);
  }

  std::span<const int> of(int part) const {
    return {loads_.data() + static_cast<std::size_t>(part) * width(), width()};
  }

  // The first part of each kind, in the order of their loads.
  std::vector<int> kinds() const {
    const auto below = [&](int a, int b) {
      return std::ranges::lexicographical_compare(of(a), of(b));
    };
    std::vector<int> first;
    for (int i = 0; i < parts_; ++i) {
      const auto at = std::ranges::lower_bound(first, i, below);
      if (at == first.end() || below(i, *at)) first.insert(at, i);
    }
    return first;
  }

 private:
  std::size_t width() const { return 4 * static_cast<std::size_t>(part_); }
  int& at(int part, int load) {
    return loads_[static_cast<std::size_t>(part) * width() + static_cast<std::size_t>(load)];
  }

  int parts_, part_;
  std::vector<int> loads_;
};

bool exceeds_nowhere(std::span<const int> a, std::span<const int> b) {
  return std::ranges::equal(a, b, [](int x, int y) { return x <= y; });
}

std::vector<int> find_busiest(const std::vector<TreeEdge>& edges, int parts, int part) {
  Loads loads(parts, part);
  for (const TreeEdge& edge : edges) {
    loads.add(edge.child, edge.parent);
    loads.add(edge.parent, edge.child);
  }
  const std::vector<int> kinds = loads.kinds();
  std::vector<int> busiest;
  std::ranges::copy_if(kinds, std::back_inserter(busiest), [&](int kind) {
    return std::ranges::none_of(kinds, [&](int other) {
      return other != kind && exceeds_nowhere(loads.of(kind), loads.of(other));
    });
  });
  std::ranges::sort(busiest);
  return busiest;
}

BusiestParts with_edges(int nodes, int part) {
  std::vector<TreeEdge> edges = edges_of_both_trees(nodes);
  BusiestParts busiest{find_busiest(edges, (nodes + part - 1) / part, part), {}};
  const auto lies_in = [&](int node) {
    return std::ranges::binary_search(busiest.parts, node / part);
  };
  std::ranges::copy_if(edges, std::back_inserter(busiest.edges), [&](const TreeEdge& edge) {
    return lies_in(edge.child) || lies_in(edge.parent);
  });
  return busiest;
}

// Limit of the cache; groups in a search over layouts have some dozens of shapes.
constexpr std::size_t most_remembered = 64;

}  // namespace

std::vector<TreeEdge> edges_of_both_trees(int nodes) {
  std::vector<TreeEdge> edges;
  edges.reserve(2 * static_cast<std::size_t>(nodes));
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

std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part) {
  thread_local std::map<std::pair<int, int>, std::shared_ptr<const BusiestParts>> known;
  const std::pair tree(nodes, part);
  if (const auto of = known.find(tree); of != known.end()) return of->second;
  if (known.size() == most_remembered) known.clear();
  return known[tree] = std::make_shared<const BusiestParts>(with_edges(nodes, part));
}

}  // namespace lambcast
