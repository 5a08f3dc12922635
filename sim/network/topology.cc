#include "sim/network/topology.h"

#include "sim/base/check.h"

namespace lambcast {

namespace {

// A fitted forecast asks for the same few routes thousands of times; a large machine for each of
// millions once.
constexpr std::size_t remembers_below = 1024;  // vertices

}  // namespace

VertexId Topology::add_vertex(Vertex vertex) {
  stamp_.push_back(0);
  hops_.push_back(0);
  return static_cast<VertexId>(boost::add_vertex(vertex, graph_));
}

LinkId Topology::add_link(VertexId from, VertexId to, Bandwidth capacity, LinkKind kind) {
  LAMBCAST_CHECK(capacity.value() > 0, "link {} -> {} has no capacity", from, to);
  known_routes_.clear();
  const auto id = static_cast<LinkId>(capacities_.size());
  capacities_.push_back(capacity);
  boost::add_edge(from, to, Link{capacity, kind, id}, graph_);
  return id;
}

void Topology::add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind) {
  add_link(a, b, capacity, kind);
  add_link(b, a, capacity, kind);
}

void Topology::append_route(VertexId from, VertexId to, std::uint32_t salt,
                            std::vector<LinkId>& out) const {
  if (from == to) return;
  if (vertices() >= remembers_below) {
    search_route(from, to, salt, out);
    return;
  }
  const std::uint64_t key = (static_cast<std::uint64_t>(salt) << 20) | (from << 10) | to;
  const auto [known, fresh] = known_routes_.try_emplace(key);
  if (fresh) search_route(from, to, salt, known->second);
  out.insert(out.end(), known->second.begin(), known->second.end());
}

void Topology::search_route(VertexId from, VertexId to, std::uint32_t salt,
                            std::vector<LinkId>& out) const {
  const auto forwards = [&](VertexId v) {
    return graph_[v].kind == VertexKind::bus || graph_[v].kind == VertexKind::fabric;
  };
  // Breadth first from the target against the arrows, until the source is met.
  ++search_;
  std::vector<VertexId> frontier{to};
  stamp_[to] = search_;
  hops_[to] = 0;
  for (std::size_t next = 0; next < frontier.size() && stamp_[from] != search_; ++next) {
    const VertexId v = frontier[next];
    for (auto [edge, end] = boost::in_edges(v, graph_); edge != end; ++edge) {
      const auto u = static_cast<VertexId>(boost::source(*edge, graph_));
      if (stamp_[u] == search_ || (u != from && !forwards(u))) continue;
      stamp_[u] = search_;
      hops_[u] = hops_[v] + 1;
      frontier.push_back(u);
    }
  }
  LAMBCAST_CHECK(stamp_[from] == search_, "no route from vertex {} to vertex {}", from, to);
  for (VertexId v = from; v != to;) {
    const auto is_nearer = [&](auto edge) {
      const auto w = static_cast<VertexId>(boost::target(*edge, graph_));
      return stamp_[w] == search_ && hops_[w] + 1 == hops_[v] && (w == to || forwards(w));
    };
    std::uint32_t choices = 0;
    for (auto [edge, end] = boost::out_edges(v, graph_); edge != end; ++edge)
      if (is_nearer(edge)) ++choices;
    LAMBCAST_CHECK(choices > 0, "route from vertex {} lost at vertex {}", from, v);
    std::uint32_t skip = salt % choices;
    for (auto [edge, end] = boost::out_edges(v, graph_); edge != end; ++edge) {
      if (!is_nearer(edge) || skip-- > 0) continue;
      out.push_back(graph_[*edge].id);
      v = static_cast<VertexId>(boost::target(*edge, graph_));
      break;
    }
  }
}

}  // namespace lambcast
