#include "sim/network/topology.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast {

void Topology::reserve(std::size_t vertices, std::size_t links) {
  vertices_.reserve(vertices);
  out_degrees_.reserve(vertices);
  links_.reserve(links);
  capacities_.reserve(links);
  roles_.reserve(links);
}

VertexId Topology::add_vertex(Vertex vertex) {
  vertices_.push_back(vertex);
  out_degrees_.push_back(0);
  return static_cast<VertexId>(vertices_.size() - 1);
}

LinkId Topology::add_link(VertexId from, VertexId to, Bandwidth capacity, LinkKind kind) {
  LAMBCAST_CHECK(from < vertices() && to < vertices(), "no such vertex: {} -> {}", from, to);
  LAMBCAST_CHECK(capacity.value() > 0, "link {} -> {} has no capacity", from, to);
  roles_.push_back(role_of_next({from, to, kind}, capacity));
  if (roles_.back() == firsts_.size()) firsts_.push_back(static_cast<LinkId>(links_.size()));
  links_.push_back({from, to, kind});
  capacities_.push_back(capacity);
  ++out_degrees_[from];
  return static_cast<LinkId>(links_.size() - 1);
}

// Compares with the latest roles only. A role that is split in two costs time, not accuracy.
std::uint32_t Topology::role_of_next(const Link& link, Bandwidth capacity) const {
  constexpr std::size_t most_looked_at = 16;
  const auto kind = [&](VertexId v) { return vertices_[v].kind; };
  for (std::size_t i = 0; i < std::min(firsts_.size(), most_looked_at); ++i) {
    const std::size_t role = firsts_.size() - 1 - i;
    const Link& first = links_[firsts_[role]];
    if (kind(first.from) == kind(link.from) && kind(first.to) == kind(link.to) &&
        capacities_[firsts_[role]] == capacity)
      return static_cast<std::uint32_t>(role);
  }
  return static_cast<std::uint32_t>(firsts_.size());
}

void Topology::add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind) {
  add_link(a, b, capacity, kind);
  add_link(b, a, capacity, kind);
}

}  // namespace lambcast
