#include "sim/collectives/double_tree.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace lambcast {
namespace {

// Returns the parent of `node` in the first tree over `nodes` nodes, -1 for the root.
int parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

// Number of flows over each link of a part (machine.h: one node, or the nodes of a leaf). Four
// counts per position: flows that the node there sends, flows that it receives, and flows that
// leave or enter the part through the port there. A flow between parts uses, in both, the port at
// the position of its receiver.
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

  // Returns the first part of each kind, in the order of their loads.
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

// Loads that decide when the last flow between nodes ends: traffic that a node sends or receives,
// or that an uplink moves out or in. The others are zero.
using Decisive = std::array<int, 4>;

// Returns the highest load of an uplink. `ports` are the loads of a part's ports.
int highest_of(std::span<const int> ports, const std::vector<std::uint32_t>& uplinks) {
  const std::size_t each = uplinks.size() / ports.size();
  std::map<std::uint32_t, int> loads;
  for (std::size_t i = 0; i < uplinks.size(); ++i)
    if (const int load = ports[i / each]; load > 0) loads[uplinks[i]] += load;
  int highest = 0;
  for (const auto& [uplink, load] : loads) highest = std::max(highest, load);
  return highest;
}

std::set<Decisive> decisive_in(std::span<const int> loads,
                               const std::vector<std::uint32_t>& uplinks) {
  const std::size_t part = loads.size() / 4;
  std::set<Decisive> all{{0, 0, highest_of(loads.subspan(2 * part, part), uplinks), 0},
                         {0, 0, 0, highest_of(loads.subspan(3 * part), uplinks)}};
  for (std::size_t i = 0; i < part; ++i) all.insert({loads[i], loads[part + i], 0, 0});
  return all;
}

// Returns a subset of `kinds` that contains the highest value of each decisive load.
std::vector<int> that_suffice(const Loads& loads, const std::vector<int>& kinds,
                              const std::vector<std::uint32_t>& uplinks) {
  std::vector<std::set<Decisive>> of;
  std::set<Decisive> all;
  for (const int kind : kinds) {
    of.push_back(decisive_in(loads.of(kind), uplinks));
    all.insert(of.back().begin(), of.back().end());
  }
  std::set<Decisive> missing;
  std::ranges::copy_if(all, std::inserter(missing, missing.end()), [&](const Decisive& load) {
    return std::ranges::none_of(
        all, [&](const Decisive& other) { return other != load && exceeds_nowhere(load, other); });
  });
  std::vector<int> kept;
  while (!missing.empty()) {
    const auto holds = [&](const std::set<Decisive>& some) {
      return std::ranges::count_if(missing,
                                   [&](const Decisive& load) { return some.contains(load); });
    };
    const auto most = std::ranges::max_element(of, {}, holds);
    kept.push_back(kinds[static_cast<std::size_t>(most - of.begin())]);
    std::erase_if(missing, [&](const Decisive& load) { return most->contains(load); });
  }
  std::ranges::sort(kept);
  return kept;
}

// Returns the kinds whose loads no other kind exceeds.
std::vector<int> find_busiest(const Loads& loads) {
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

Loads loads_of(const std::vector<TreeEdge>& edges, int nodes, int part) {
  Loads loads((nodes + part - 1) / part, part);
  for (const TreeEdge& edge : edges) {
    loads.add(edge.child, edge.parent);
    loads.add(edge.parent, edge.child);
  }
  return loads;
}

BusiestParts with_edges(std::vector<int> parts, const std::vector<TreeEdge>& edges, int part) {
  BusiestParts busiest{std::move(parts), {}};
  const auto lies_in = [&](int node) {
    return std::ranges::binary_search(busiest.parts, node / part);
  };
  std::ranges::copy_if(edges, std::back_inserter(busiest.edges), [&](const TreeEdge& edge) {
    return lies_in(edge.child) || lies_in(edge.parent);
  });
  return busiest;
}

BusiestParts find_parts(int nodes, int part, const std::vector<std::uint32_t>& uplinks) {
  if (uplinks.empty()) {
    const std::vector<TreeEdge> edges = edges_of_both_trees(nodes);
    return with_edges(find_busiest(loads_of(edges, nodes, part)), edges, part);
  }
  const auto busiest = busiest_parts(nodes, part);
  const Loads loads = loads_of(busiest->edges, nodes, part);
  return with_edges(that_suffice(loads, busiest->parts, uplinks), busiest->edges, part);
}

// Limit of the cache; a search over layouts has some dozens of group shapes.
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

std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part,
                                                  const std::vector<std::uint32_t>& uplinks) {
  using Tree = std::tuple<int, int, std::vector<std::uint32_t>>;
  thread_local std::map<Tree, std::shared_ptr<const BusiestParts>> known;
  const Tree tree(nodes, part, uplinks);
  if (const auto of = known.find(tree); of != known.end()) return of->second;
  if (known.size() == most_remembered) known.clear();
  return known[tree] = std::make_shared<const BusiestParts>(find_parts(nodes, part, uplinks));
}

}  // namespace lambcast
