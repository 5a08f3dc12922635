#include "sim/network/router.h"

#include <algorithm>
#include <bit>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/reverse_graph.hpp>
#include <boost/pending/disjoint_sets.hpp>
#include <boost/property_map/property_map.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint16_t unreached = std::numeric_limits<std::uint16_t>::max();
// Limit of kept hop counts (128 MiB); beyond it all are dropped.
constexpr std::size_t most_counts = std::size_t{1} << 26;
// Longest period of salts for which the paths between two switches are kept.
constexpr std::uint32_t longest_period = 256;
// Number of switches whose next hops to a target are kept.
constexpr std::size_t most_ways_on = 128;
// Number of pairs of switches whose paths are kept; a power of two.
constexpr std::size_t most_between = 4096;

bool forwards(const Vertex& vertex) {
  return vertex.kind == VertexKind::bus || vertex.kind == VertexKind::slot ||
         vertex.kind == VertexKind::fabric;
}

// A link seen from one end: the vertex at its other end and, for a switch, its number and part.
using SwitchId = std::uint32_t;
struct Neighbour {
  LinkId link;
  VertexId vertex;
  SwitchId number;
  SwitchId part = none;
};

// The links of two endpoints that have only one first and one last link.
struct Ends {
  const Neighbour* first = nullptr;  // null if there is a choice, or if they are neighbours
  const Neighbour* last = nullptr;
};

// The neighbours of each vertex, in the order in which their links were added.
class Incidence {
 public:
  Incidence(const Topology& topology, VertexId Link::*end, VertexId Link::*other,
            const std::vector<SwitchId>& numbers)
      : first_(topology.vertices() + 1) {
    for (const Link& link : topology.links()) ++first_[link.*end + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    neighbours_.resize(topology.links().size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (LinkId id = 0; id < neighbours_.size(); ++id) {
      const Link& link = topology.link(id);
      neighbours_[next[link.*end]++] = {id, link.*other, numbers[link.*other]};
    }
  }
  std::span<const Neighbour> of(VertexId v) const {
    return {neighbours_.data() + first_[v], neighbours_.data() + first_[v + 1]};
  }
  void know_parts(const std::vector<SwitchId>& part) {
    for (Neighbour& next : neighbours_)
      if (next.number != none) next.part = part[next.number];
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<Neighbour> neighbours_;
};

// The switches of a topology, numbered from 0.
struct Numbering {
  explicit Numbering(const Topology& topology) : number(topology.vertices(), none) {
    for (VertexId v = 0; v < topology.vertices(); ++v) {
      if (!forwards(topology.vertex(v))) continue;
      number[v] = static_cast<SwitchId>(vertex.size());
      vertex.push_back(v);
    }
  }
  std::vector<SwitchId> number;  // indexed by vertex; none for endpoints
  std::vector<VertexId> vertex;  // indexed by switch
};

// Switches and the links between them.
using Switches =
    boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, LinkId,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Against = boost::reverse_graph<Switches>;

// Hop counts from the switches of a part to a target, for the switches that the search has reached.
struct Counts {
  std::vector<std::uint16_t> hops;  // indexed by position in the part
  std::vector<SwitchId> met;        // switches reached, in search order
  std::size_t searched = 0;         // number of `met` whose neighbours were searched
};

}  // namespace

class Router::Tables {
 public:
  explicit Tables(const Topology& topology)
      : switch_(topology),
        out_(topology, &Link::from, &Link::to, switch_.number),
        in_(topology, &Link::to, &Link::from, switch_.number) {
    join();
    find_parts();
    out_.know_parts(part_);
    in_.know_parts(part_);
    to_switch_.resize(switch_.vertex.size());
    ways_on_.resize(std::clamp<std::size_t>(switch_.vertex.size(), 1, most_ways_on));
  }

  void append_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out) {
    if (from == to) return;
    if (kept_ > most_counts) forget();
    if (append_known(from, to, salt, out)) return;
    SwitchId at = switch_.number[from];
    Counts* counts = nullptr;
    if (at != none) {
      counts = counts_to(to, part_[at]);
      LAMBCAST_CHECK(counts != nullptr && reach(*counts, at),
                     "no route from vertex {} to vertex {}", from, to);
    } else {
      const Step step = first_step(from, to, salt);
      out.push_back(step.link);
      if (step.counts == nullptr) return;
      at = step.at;
      counts = step.counts;
    }
    at = append_hops(at, *counts, salt, out);
    if (switch_.vertex[at] != to) out.push_back(last_step(at, to, salt));
  }

 private:
  struct Step {
    LinkId link;
    SwitchId at;     // switch after this step
    Counts* counts;  // hop counts from there; null at the target
  };
  // Links from a switch to switches that are nearer to a target.
  struct WaysOn {
    SwitchId from = none;
    const Counts* counts = nullptr;  // identify the target
    std::vector<std::pair<LinkId, SwitchId>> ways;
  };

  // All paths from one switch to another, shared by neighbouring endpoints.
  struct Between {
    SwitchId from = none;
    SwitchId to = none;
    std::uint32_t period = 0;  // period of the salts; zero if the paths are not kept
    std::uint32_t hops = 0;
    std::vector<LinkId> links;  // `hops` links for each salt below the period
  };

  // Appends a route in the common case: endpoints that have one link each, on switches whose paths
  // are kept. Returns false otherwise.
  bool append_known(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out) {
    const Ends ends = ends_of(from, to);
    if (ends.first == nullptr) return false;
    const Between& between = ways_between(ends.first->number, ends.last->number);
    if (between.period == 0) return false;
    const LinkId* const links = between.links.data() + salt % between.period * between.hops;
    out.push_back(ends.first->link);
    for (std::uint32_t hop = 0; hop < between.hops; ++hop) out.push_back(links[hop]);
    out.push_back(ends.last->link);
    return true;
  }

  void join() {
    std::vector<std::pair<SwitchId, SwitchId>> edges;
    std::vector<LinkId> links;
    for (SwitchId s = 0; s < switch_.vertex.size(); ++s) {
      for (const Neighbour& next : out_.of(switch_.vertex[s])) {
        if (next.number == none) continue;
        edges.emplace_back(s, next.number);
        links.push_back(next.link);
      }
    }
    switches_ = Switches(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                         links.begin(), static_cast<std::uint32_t>(switch_.vertex.size()));
  }

  // Divides the switches into connected parts; the buses of a node are a part of their own.
  void find_parts() {
    std::vector<SwitchId> rank(switch_.vertex.size()), parent(switch_.vertex.size());
    const auto map_of = [](std::vector<SwitchId>& values) {
      return boost::make_iterator_property_map(values.begin(), boost::identity_property_map());
    };
    auto ranks = map_of(rank), parents = map_of(parent);
    boost::disjoint_sets<decltype(ranks), decltype(parents)> sets(ranks, parents);
    for (SwitchId s = 0; s < switch_.vertex.size(); ++s) sets.make_set(s);
    for (auto [edge, end] = edges(switches_); edge != end; ++edge)
      sets.union_set(source(*edge, switches_), target(*edge, switches_));
    part_.resize(switch_.vertex.size());
    place_.resize(switch_.vertex.size());
    part_size_.resize(switch_.vertex.size());
    for (SwitchId s = 0; s < switch_.vertex.size(); ++s) {
      part_[s] = sets.find_set(s);
      place_[s] = part_size_[part_[s]]++;
    }
  }

  // Returns the hop counts to the switches of a part next to `to`, or to `to` itself if it belongs
  // to that part.
  Counts* counts_to(VertexId to, SwitchId part) {
    next_to_.clear();
    if (const SwitchId number = switch_.number[to]; number != none) {
      if (part_[number] == part) next_to_.push_back(number);
    } else {
      for (const Neighbour& before : in_.of(to))
        if (before.number != none && part_[before.number] == part &&
            std::find(next_to_.begin(), next_to_.end(), before.number) == next_to_.end())
          next_to_.push_back(before.number);
    }
    if (next_to_.empty()) return nullptr;
    auto& counts = next_to_.size() == 1 ? to_switch_[next_to_.front()] : to_several_[next_to_];
    if (counts == nullptr) {
      counts = std::make_unique<Counts>();
      counts->hops.assign(part_size_[part], unreached);
      counts->met = next_to_;
      for (const SwitchId s : next_to_) counts->hops[place_[s]] = 0;
      kept_ += counts->hops.size();
    }
    return counts.get();
  }

  void forget() {
    for (auto& counts : to_switch_) counts.reset();
    to_several_.clear();
    for (WaysOn& kept : ways_on_) kept.counts = nullptr;
    kept_ = 0;
  }

  // Continues Boost's breadth-first search against the links until it reaches `goal`.
  bool reach(Counts& counts, SwitchId goal) {
    if (counts.hops[place_[goal]] != unreached) return true;
    Frontier frontier{&counts, place_[goal]};
    const SwitchId* const no_more = nullptr;
    boost::breadth_first_visit(Against(switches_), no_more, no_more, frontier,
                               boost::make_bfs_visitor(Counting{&counts, place_.data()}),
                               Met{&counts, place_.data()});
    return counts.hops[place_[goal]] != unreached;
  }

  // The queue of the search, which becomes empty once the goal is reached.
  struct Frontier {
    Counts* counts;
    std::uint32_t goal;
    bool empty() const {
      return counts->searched == counts->met.size() || counts->hops[goal] != unreached;
    }
    const SwitchId& top() const { return counts->met[counts->searched]; }
    void pop() { ++counts->searched; }
    void push(SwitchId s) { counts->met.push_back(s); }
  };
  struct Counting {
    using event_filter = boost::on_tree_edge;
    template <class Edge, class Graph>
    void operator()(Edge edge, const Graph& graph) {
      const std::uint16_t hops = counts->hops[place[source(edge, graph)]];
      LAMBCAST_CHECK(hops + 1 < unreached, "a route of {} hops", hops);
      counts->hops[place[target(edge, graph)]] = static_cast<std::uint16_t>(hops + 1);
    }
    Counts* counts;
    const std::uint32_t* place;
  };
  // Colour map of the search: a switch with a hop count has been visited.
  struct Met {
    using key_type = SwitchId;
    using value_type = boost::default_color_type;
    using reference = value_type;
    using category = boost::read_write_property_map_tag;
    Counts* counts;
    const std::uint32_t* place;
    friend value_type get(const Met& met, SwitchId s) {
      return met.counts->hops[met.place[s]] == unreached ? boost::white_color : boost::gray_color;
    }
    friend void put(const Met&, SwitchId, value_type) {}  // the visitor counts it
  };

  Ends ends_of(VertexId from, VertexId to) const {
    Ends ends;
    if (switch_.number[from] != none || switch_.number[to] != none) return ends;
    const std::span<const Neighbour> before = in_.of(to);
    for (const Neighbour& first : out_.of(from)) {
      if (first.vertex == to) return {};
      if (first.number == none) continue;
      for (const Neighbour& last : before) {
        if (last.part != first.part) continue;
        if (ends.first != nullptr) return {};
        ends = {&first, &last};
      }
    }
    return ends;
  }

  const Between& ways_between(SwitchId from, SwitchId to) {
    if (between_.empty()) {
      const std::size_t pairs = switch_.vertex.size() * switch_.vertex.size();
      between_.resize(std::min(most_between, std::bit_ceil(pairs)));
    }
    Between& kept = between_[(from * 64 + to) & (between_.size() - 1)];
    if (kept.from == from && kept.to == to) return kept;
    kept = {from, to, 0, 0, {}};
    Counts* const counts = counts_to(switch_.vertex[to], part_[to]);
    if (!reach(*counts, from)) return kept;
    const std::uint32_t period = period_of(from, *counts);
    if (period > longest_period) return kept;
    kept.period = period;
    kept.hops = counts->hops[place_[from]];
    for (std::uint32_t salt = 0; salt < period; ++salt)
      append_hops(from, *counts, salt, kept.links);
    return kept;
  }

  // Returns the period of the salt: the least common multiple of the numbers of choices on the
  // paths.
  std::uint32_t period_of(SwitchId from, const Counts& counts) {
    std::uint32_t period = 1;
    std::vector<SwitchId> here{from}, next;
    for (std::uint16_t left = counts.hops[place_[from]]; left > 0; --left) {
      next.clear();
      for (const SwitchId at : here) {
        const auto& ways = ways_on(at, counts, left);
        period = std::lcm(period, static_cast<std::uint32_t>(ways.size()));
        if (period > longest_period) return period;
        for (const auto& [link, to] : ways) next.push_back(to);
      }
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      here.swap(next);
    }
    return period;
  }

  // Appends the links from a switch to the target of `counts` and returns the last switch.
  SwitchId append_hops(SwitchId at, const Counts& counts, std::uint32_t salt,
                       std::vector<LinkId>& out) {
    for (std::uint16_t left = counts.hops[place_[at]]; left > 0; --left) {
      const auto& ways = ways_on(at, counts, left);
      const auto& [link, next] = ways[salt % ways.size()];
      out.push_back(link);
      at = next;
    }
    return at;
  }

  // Returns the first step from an endpoint, which may have links to several parts.
  Step first_step(VertexId from, VertexId to, std::uint32_t salt) {
    std::uint32_t fewest = none;
    steps_.clear();
    for (const Neighbour& next : out_.of(from)) {
      Counts* counts = nullptr;
      std::uint32_t hops = 0;
      if (next.vertex != to) {
        if (next.number == none) continue;
        counts = counts_to(to, part_[next.number]);
        if (counts == nullptr || !reach(*counts, next.number)) continue;
        hops = counts->hops[place_[next.number]] + (switch_.number[to] == none ? 1U : 0U);
      }
      if (hops > fewest) continue;
      if (hops < fewest) steps_.clear();
      fewest = hops;
      steps_.push_back({next.link, next.number, counts});
    }
    LAMBCAST_CHECK(!steps_.empty(), "no route from vertex {} to vertex {}", from, to);
    return steps_[salt % steps_.size()];
  }

  // Returns the next hops of a switch `left` hops away. Neighbouring endpoints request the same
  // hops in a row, so the last results are kept.
  const std::vector<std::pair<LinkId, SwitchId>>& ways_on(SwitchId at, const Counts& counts,
                                                          std::uint16_t left) {
    WaysOn& kept = ways_on_[at % ways_on_.size()];
    if (kept.from == at && kept.counts == &counts) return kept.ways;
    kept.from = at;
    kept.counts = &counts;
    kept.ways.clear();
    // One hop from the target, search the links into the target: it usually has fewer than a spine.
    const SwitchId target_switch = counts.met.front();
    if (left == 1 && counts.met.size() > 1 && counts.hops[place_[counts.met[1]]] != 0 &&
        in_degree(target_switch, switches_) < out_degree(at, switches_)) {
      for (auto [edge, end] = in_edges(target_switch, switches_); edge != end; ++edge)
        if (source(*edge, switches_) == at) kept.ways.emplace_back(switches_[*edge], target_switch);
    } else {
      for (auto [edge, end] = out_edges(at, switches_); edge != end; ++edge)
        if (counts.hops[place_[target(*edge, switches_)]] + 1 == left)
          kept.ways.emplace_back(switches_[*edge], target(*edge, switches_));
    }
    LAMBCAST_CHECK(!kept.ways.empty(), "route lost at vertex {}", switch_.vertex[at]);
    return kept.ways;
  }

  LinkId last_step(SwitchId from, VertexId to, std::uint32_t salt) {
    choices_.clear();
    for (const Neighbour& before : in_.of(to))
      if (before.number == from) choices_.push_back(before.link);
    return choices_[salt % choices_.size()];
  }

  Numbering switch_;
  Incidence out_, in_;
  Switches switches_;
  std::vector<SwitchId> part_;  // part of each switch, named after one of its switches
  std::vector<std::uint32_t> place_, part_size_;
  std::vector<std::unique_ptr<Counts>> to_switch_;
  std::map<std::vector<SwitchId>, std::unique_ptr<Counts>> to_several_;
  std::size_t kept_ = 0;
  std::vector<SwitchId> next_to_;
  std::vector<WaysOn> ways_on_;
  std::vector<Between> between_;  // indexed by a hash of both switches; empty until first used
  std::vector<Step> steps_;
  std::vector<LinkId> choices_;
};

Router::Router(const Topology& topology)
    : tables_(std::make_unique<Tables>(topology)), shares_(topology) {}
Router::~Router() = default;

void Router::append_route(VertexId from, VertexId to, std::uint32_t salt,
                          std::vector<LinkId>& out) {
  tables_->append_route(from, to, salt, out);
}

}  // namespace lambcast
