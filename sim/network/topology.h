// The machine as a directed graph: GPUs, host memories, NICs and switches joined by links with a
// capacity each way. Collectives are laid over its routes.
//
// Latency is not a property of a link here: what a hop costs depends on the protocol that crosses
// it (see sim/collectives/transport.h), so links carry capacity only.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

enum class VertexKind { gpu, host, bus, nic, fabric };

struct Vertex {
  VertexKind kind = VertexKind::bus;
  int node = -1;  // -1 for fabric switches
  int index = 0;  // among the vertices of its kind in its node
};

// What a link is part of, for accounting: traffic on `network` links left a node.
enum class LinkKind { local, network };

struct Link {
  Bandwidth capacity;
  LinkKind kind = LinkKind::local;
  std::uint32_t id = 0;
};

using VertexId = std::uint32_t;
using LinkId = std::uint32_t;

class Topology {
 public:
  VertexId add_vertex(Vertex vertex);
  LinkId add_link(VertexId from, VertexId to, Bandwidth capacity, LinkKind kind);
  // A link each way.
  void add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind);

  std::size_t vertices() const { return boost::num_vertices(graph_); }
  std::size_t links() const { return capacities_.size(); }
  const Vertex& vertex(VertexId v) const { return graph_[v]; }
  Bandwidth capacity(LinkId link) const { return capacities_[link]; }

  // Appends the links of a shortest path (fewest hops) from `from` to `to`. Only buses and fabric
  // switches forward; among equal next hops the one at position `salt` modulo their number is
  // taken, which spreads flows as static routing (d-mod-k) does. Throws InternalError when no path
  // exists. Cost grows with the vertices nearer than `to`, not with the machine; small topologies
  // remember their routes.
  void append_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out) const;

  using Graph =
      boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, Vertex, Link>;
  const Graph& graph() const { return graph_; }

 private:
  void search_route(VertexId from, VertexId to, std::uint32_t salt, std::vector<LinkId>& out) const;

  Graph graph_;
  std::vector<Bandwidth> capacities_;
  // Scratch of append_route: hops to the target, valid where stamp matches.
  mutable std::vector<std::uint32_t> stamp_, hops_;
  mutable std::uint32_t search_ = 0;
  mutable std::unordered_map<std::uint64_t, std::vector<LinkId>> known_routes_;
};

}  // namespace lambcast
