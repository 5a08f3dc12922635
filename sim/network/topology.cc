#include "sim/network/topology.h"

#include "sim/base/check.h"

namespace lambcast {

void Topology::reserve(std::size_t vertices, std::size_t links) {
  vertices_.reserve(vertices);
  out_degrees_.reserve(vertices);
  links_.reserve(links);
  capacities_.reserve(links);
}

VertexId Topology::add_vertex(Vertex vertex) {
  vertices_.push_back(vertex);
  out_degrees_.push_back(0);
  return static_cast<VertexId>(vertices_.size() - 1);
}

LinkId Topology::add_link(VertexId from, VertexId to, Bandwidth capacity, LinkKind kind) {
  LAMBCAST_CHECK(from < vertices() && to < vertices(), "no such vertex: {} -> {}", from, to);
  LAMBCAST_CHECK(capacity.value() > 0, "link {} -> {} has no capacity", from, to);
  links_.push_back({from, to, kind});
  capacities_.push_back(capacity);
  ++out_degrees_[from];
  return static_cast<LinkId>(links_.size() - 1);
}

void Topology::add_duplex(VertexId a, VertexId b, Bandwidth capacity, LinkKind kind) {
  add_link(a, b, capacity, kind);
  add_link(b, a, capacity, kind);
}

}  // namespace lambcast
