#include "sim/network/router.h"

#include <algorithm>
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
// Counts kept before all are forgotten (128 MiB).
constexpr std::size_t most_counts = std::size_t{1} << 26;

bool forwards(const Vertex& vertex) {
  return vertex.kind == VertexKind::bus || vertex.kind == VertexKind::fabric;
}

// The links of each vertex, in the order they were added.
class Incidence {
 public:
  Incidence(const Topology& topology, VertexId Link::*end) : first_(topology.vertices() + 1) {
    for (const Link& link : topology.links()) ++first_[link.*end + 1];
    std::partial_sum(first_.begin(), first_.end(), first_.begin());
    links_.resize(topology.links().size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (LinkId id = 0; id < links_.size(); ++id) links_[next[topology.link(id).*end]++] = id;
  }
  std::span<const LinkId> of(VertexId v) const {
    return {links_.data() + first_[v], links_.data() + first_[v + 1]};
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<LinkId> links_;
};

// Switches and the links between them; switches are numbered from 0.
using SwitchId = std::uint32_t;
using Switches =
    boost::compressed_sparse_row_graph<boost::bidirectionalS, boost::no_property, LinkId,
                                       boost::no_property, std::uint32_t, std::uint32_t>;
using Against = boost::reverse_graph<Switches>;

// Hops from the switches of a part to a target, as far as the search has come.
struct Counts {
  std::vector<std::uint16_t> hops;  // by place in the part
  std::vector<SwitchId> met;        // in the order of the search
  std::size_t searched = 0;         // of those met
};

}  // namespace

class Router::Tables {
 public:
  explicit Tables(const Topology& topology)
      : topology_(topology),
        out_(topology, &Link::from),
        in_(topology, &Link::to),
        number_(topology.vertices(), none) {
    for (VertexId v = 0; v < topology.vertices(); ++v) {
      if (!forwards(topology.vertex(v))) continue;
      number_[v] = static_cast<SwitchId>(vertex_.size());
      vertex_.push_back(v);
    }
    join();
    find_parts();
    to_switch_.resize(vertex_.size());
  }

  void append_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out) {
    if (from == to) return;
    if (kept_ > most_counts) forget();
    SwitchId at = number_[from];
    Counts* counts = nullptr;
    if (at != none) {
      counts = counts_to(to, part_[at]);
      LAMBCAST_CHECK(counts != nullptr && reach(*counts, at),
                     "no route from vertex {} to vertex {}", from, to);
    } else {
      const Step step = first_step(from, to, salt);
      out.push_back(step.link);
      if (topology_.link(step.link).to == to) return;
      at = number_[topology_.link(step.link).to];
      counts = step.counts;
    }
    for (std::uint16_t left = counts->hops[place_[at]]; left > 0; --left) {
      const LinkId link = nearer(at, *counts, left, salt);
      out.push_back(link);
      at = number_[topology_.link(link).to];
    }
    if (vertex_[at] != to) out.push_back(last_step(vertex_[at], to, salt));
  }

 private:
  struct Step {
    LinkId link;
    Counts* counts;  // to go on with; null at the target
  };

  void join() {
    std::vector<std::pair<SwitchId, SwitchId>> edges;
    std::vector<LinkId> links;
    for (const VertexId v : vertex_) {
      for (const LinkId link : out_.of(v)) {
        const SwitchId head = number_[topology_.link(link).to];
        if (head == none) continue;
        edges.emplace_back(number_[v], head);
        links.push_back(link);
      }
    }
    switches_ = Switches(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(),
                         links.begin(), static_cast<std::uint32_t>(vertex_.size()));
  }

  // Switches that links join; a node's buses are a part of their own.
  void find_parts() {
    std::vector<SwitchId> rank(vertex_.size()), parent(vertex_.size());
    const auto map_of = [](std::vector<SwitchId>& values) {
      return boost::make_iterator_property_map(values.begin(), boost::identity_property_map());
    };
    auto ranks = map_of(rank), parents = map_of(parent);
    boost::disjoint_sets<decltype(ranks), decltype(parents)> sets(ranks, parents);
    for (SwitchId s = 0; s < vertex_.size(); ++s) sets.make_set(s);
    for (auto [edge, end] = edges(switches_); edge != end; ++edge)
      sets.union_set(source(*edge, switches_), target(*edge, switches_));
    part_.resize(vertex_.size());
    place_.resize(vertex_.size());
    part_size_.resize(vertex_.size());
    for (SwitchId s = 0; s < vertex_.size(); ++s) {
      part_[s] = sets.find_set(s);
      place_[s] = part_size_[part_[s]]++;
    }
  }

  // Counts to the switches of a part next to `to`, or to `to` itself if it is one of them.
  Counts* counts_to(VertexId to, SwitchId part) {
    next_to_.clear();
    if (number_[to] != none) {
      if (part_[number_[to]] == part) next_to_.push_back(number_[to]);
    } else {
      for (const LinkId link : in_.of(to)) {
        const SwitchId s = number_[topology_.link(link).from];
        if (s != none && part_[s] == part &&
            std::find(next_to_.begin(), next_to_.end(), s) == next_to_.end())
          next_to_.push_back(s);
      }
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
    kept_ = 0;
  }

  // Boost's breadth-first search against the links, from where it stood until `goal` is met.
  bool reach(Counts& counts, SwitchId goal) {
    if (counts.hops[place_[goal]] != unreached) return true;
    Frontier frontier{&counts, place_[goal]};
    const SwitchId* const no_more = nullptr;
    boost::breadth_first_visit(Against(switches_), no_more, no_more, frontier,
                               boost::make_bfs_visitor(Counting{&counts, place_.data()}),
                               Met{&counts, place_.data()});
    return counts.hops[place_[goal]] != unreached;
  }

  // The search's queue, which ends the search when the goal is met.
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
  // Colours for the search: what has a count was met.
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
    friend void put(const Met&, SwitchId, value_type) {}  // as the visitor has counted it
  };

  // From an endpoint, which may hang on several parts.
  Step first_step(VertexId from, VertexId to, std::uint32_t salt) {
    std::uint32_t fewest = none;
    steps_.clear();
    for (const LinkId link : out_.of(from)) {
      const VertexId head = topology_.link(link).to;
      const SwitchId s = number_[head];
      Counts* counts = nullptr;
      std::uint32_t hops = 0;
      if (head != to) {
        if (s == none) continue;
        counts = counts_to(to, part_[s]);
        if (counts == nullptr || !reach(*counts, s)) continue;
        hops = counts->hops[place_[s]] + (number_[to] == none ? 1U : 0U);
      }
      if (hops > fewest) continue;
      if (hops < fewest) steps_.clear();
      fewest = hops;
      steps_.push_back({link, counts});
    }
    LAMBCAST_CHECK(!steps_.empty(), "no route from vertex {} to vertex {}", from, to);
    return steps_[salt % steps_.size()];
  }

  // A link from a switch to one that is nearer, which is `left` - 1 hops away.
  LinkId nearer(SwitchId at, const Counts& counts, std::uint16_t left, std::uint32_t salt) {
    choices_.clear();
    // Next to the target, its links are usually fewer than those of a spine.
    const SwitchId target_switch = counts.met.front();
    if (left == 1 && counts.met.size() > 1 && counts.hops[place_[counts.met[1]]] != 0 &&
        in_degree(target_switch, switches_) < out_degree(at, switches_)) {
      for (auto [edge, end] = in_edges(target_switch, switches_); edge != end; ++edge)
        if (source(*edge, switches_) == at) choices_.push_back(switches_[*edge]);
    } else {
      for (auto [edge, end] = out_edges(at, switches_); edge != end; ++edge)
        if (counts.hops[place_[target(*edge, switches_)]] + 1 == left)
          choices_.push_back(switches_[*edge]);
    }
    LAMBCAST_CHECK(!choices_.empty(), "route lost at vertex {}", vertex_[at]);
    return choices_[salt % choices_.size()];
  }

  LinkId last_step(VertexId from, VertexId to, std::uint32_t salt) {
    choices_.clear();
    for (const LinkId link : in_.of(to))
      if (topology_.link(link).from == from) choices_.push_back(link);
    return choices_[salt % choices_.size()];
  }

  const Topology& topology_;
  Incidence out_, in_;
  std::vector<SwitchId> number_;  // by vertex; none for endpoints
  std::vector<VertexId> vertex_;  // by switch
  Switches switches_;
  std::vector<SwitchId> part_;  // by switch, named after one of its switches
  std::vector<std::uint32_t> place_, part_size_;
  std::vector<std::unique_ptr<Counts>> to_switch_;
  std::map<std::vector<SwitchId>, std::unique_ptr<Counts>> to_several_;
  std::size_t kept_ = 0;
  std::vector<SwitchId> next_to_;
  std::vector<Step> steps_;
  std::vector<LinkId> choices_;
};

Router::Router(const Topology& topology) : tables_(std::make_unique<Tables>(topology)) {}
Router::~Router() = default;

void Router::append_route(VertexId from, VertexId to, std::uint32_t salt,
                          std::vector<LinkId>& out) {
  tables_->append_route(from, to, salt, out);
}

}  // namespace lambcast
