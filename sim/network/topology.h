// The machine as a directed graph: GPUs, host memories, NICs and switches joined by links with a
// capacity each way. Collectives are laid over its routes, which a Router finds.
//
// Latency is not a property of a link here: what a hop costs depends on the protocol that crosses
// it (see sim/collectives/transport.h), so links carry capacity only.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

// A slot is the PCIe way of a GPU to the root of its node.
enum class VertexKind { gpu, host, bus, slot, nic, fabric };

struct Vertex {
  VertexKind kind = VertexKind::bus;
  int node = -1;  // -1 for fabric switches
  int index = 0;  // among the vertices of its kind in its node
};

// Kind of a link, for accounting: traffic on `network` links left a node.
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
  // A link each way.
  void add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind);

  std::size_t vertices() const { return vertices_.size(); }
  const Vertex& vertex(VertexId v) const { return vertices_[v]; }
  // Links that leave it so far.
  std::uint32_t out_degree(VertexId v) const { return out_degrees_[v]; }

  const std::vector<Link>& links() const { return links_; }
  const Link& link(LinkId id) const { return links_[id]; }
  Bandwidth capacity(LinkId id) const { return capacities_[id]; }
  // Returns a number that links share if they join vertices of the same kinds at one capacity. At
  // any rates of a machine (machine.h), links of a role have one capacity.
  std::uint32_t role(LinkId id) const { return roles_[id]; }

 private:
  std::uint32_t role_of_next(const Link& link, Bandwidth capacity) const;

  std::vector<Vertex> vertices_;
  std::vector<std::uint32_t> out_degrees_;
  std::vector<Link> links_;
  std::vector<Bandwidth> capacities_;
  std::vector<std::uint32_t> roles_;  // by link
  std::vector<LinkId> firsts_;        // a link of each role
};

}  // namespace lambcast
