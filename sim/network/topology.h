// The machine as a directed graph: GPUs, host memories, NICs and switches, joined by links with a
// capacity per direction. A Router finds the routes of collectives in it.
//
// Latency is not a property of a link here: the cost of a hop depends on the protocol that crosses
// it (see sim/collectives/transport.h), so links have only a capacity.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

// A slot is the PCIe connection of a GPU to the root of its node.
enum class VertexKind { gpu, host, bus, slot, nic, fabric };

struct Vertex {
  VertexKind kind = VertexKind::bus;
  int node = -1;  // -1 for fabric switches
  int index = 0;  // among the vertices of the same kind in its node
};

// Kind of a link, for accounting: `network` links lie outside the nodes.
enum class LinkKind { local, network };

using VertexId = std::uint32_t;
using LinkId = std::uint32_t;

struct Link {
  VertexId from = 0;
  VertexId to = 0;
  LinkKind kind = LinkKind::local;
};

class Topology {
 public:
  void reserve(std::size_t vertices, std::size_t links);
  VertexId add_vertex(Vertex vertex);
  LinkId add_link(VertexId from, VertexId to, Bandwidth capacity, LinkKind kind);
  // Adds a link in each direction.
  void add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind);

  std::size_t vertices() const { return vertices_.size(); }
  const Vertex& vertex(VertexId v) const { return vertices_[v]; }
  // Returns the number of links that leave the vertex so far.
  std::uint32_t out_degree(VertexId v) const { return out_degrees_[v]; }

  const std::vector<Link>& links() const { return links_; }
  const Link& link(LinkId id) const { return links_[id]; }
  Bandwidth capacity(LinkId id) const { return capacities_[id]; }
  // Returns the role of a link. Links have one role if they join vertices of the same kinds at one
  // capacity. In machines (machine.h) of other rates, links of a role still share one capacity.
  std::uint32_t role(LinkId id) const { return roles_[id]; }

 private:
  std::uint32_t role_of_next(const Link& link, Bandwidth capacity) const;

  std::vector<Vertex> vertices_;
  std::vector<std::uint32_t> out_degrees_;
  std::vector<Link> links_;
  std::vector<Bandwidth> capacities_;
  std::vector<std::uint32_t> roles_;  // indexed by link
  std::vector<LinkId> firsts_;        // the first link of each role
};

}  // namespace lambcast
