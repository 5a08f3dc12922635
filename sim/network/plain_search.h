// For tests: finds a route by a plain search over the whole topology, following the definition in
// router.h.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <limits>
#include <vector>

#include "sim/network/topology.h"

namespace lambcast {

inline std::vector<LinkId> plain_route(const Topology& topology, VertexId from, VertexId to,
                                       std::uint32_t salt) {
  const auto passes = [&](VertexId v) {
    const VertexKind kind = topology.vertex(v).kind;
    return v == from || v == to || kind == VertexKind::bus || kind == VertexKind::slot ||
           kind == VertexKind::fabric;
  };
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> against(topology.vertices());
  for (const Link& link : topology.links())
    if (passes(link.from) && passes(link.to)) boost::add_edge(link.to, link.from, against);
  constexpr int far = std::numeric_limits<int>::max() / 2;
  std::vector<int> hops(topology.vertices(), far);
  hops[to] = 0;
  boost::breadth_first_search(against, to,
                              boost::visitor(boost::make_bfs_visitor(
                                  boost::record_distances(hops.data(), boost::on_tree_edge()))));
  std::vector<LinkId> route;
  for (VertexId at = from; at != to;) {
    std::vector<LinkId> nearer;
    for (LinkId id = 0; id < topology.links().size(); ++id) {
      const Link& link = topology.link(id);
      if (link.from == at && passes(link.to) && hops[link.to] + 1 == hops[at]) nearer.push_back(id);
    }
    if (nearer.empty()) return {};
    route.push_back(nearer[salt % nearer.size()]);
    at = topology.link(route.back()).to;
  }
  return route;
}

}  // namespace lambcast
