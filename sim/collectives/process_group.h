// Ranks that call a collective together, and sibling groups that make the same call at once.
//
// A training layout divides its ranks into groups per axis: with tensor parallelism over the 8 GPUs
// of a node, GPU i of every node forms a data-parallel group of one member per node, and eight such
// groups reduce their gradients at the same moment. The cost of such a call depends on the relative
// positions of its members only, so the group is a plain value:
//
//   member i   slot (i % per_node) * stride of node (i / per_node) * node_stride
//   sibling k  the same, shifted by (k / stride) * per_node * stride + k % stride slots
//
// One group on whole nodes is {ranks, GPUs per node}. The data-parallel groups above are {nodes, 1,
// 8, 1, 8}. Two tensor-parallel groups of 4 on a node of 8 are {4, 4, 1, 1, 2}.
//
// Left out: groups on other nodes, which share only links of an oversubscribed fabric with these.
// Both network models of a step include them (collective_costs.h, peer_groups.h in
// models/training/price/).
#pragma once

#include <compare>

namespace lambcast {

struct ProcessGroup {
  int ranks = 1;
  int per_node = 1;  // members per node; the last node may have fewer
  int stride = 1;    // slots from one member to the next on a node
  int node_stride = 1;
  // Number of equal groups on the same nodes that make the same call at the same time and share the
  // nodes' NICs and links. The group itself is counted.
  int siblings = 1;

  // Returns the number of nodes with members; the n-th of them is node n * node_stride.
  int nodes() const { return (ranks + per_node - 1) / per_node; }
  int node_of(int rank) const { return rank / per_node; }
  int ranks_on(int node) const;
  bool uniform() const { return ranks % per_node == 0; }

  // Returns the number of slots of a node that the siblings span: whole blocks of per_node *
  // stride.
  int slots() const;
  int slot_of(int rank, int sibling = 0) const;
  // Returns the number of nodes that the group spans: whole strides.
  int node_span() const { return nodes() * node_stride; }

  friend auto operator<=>(const ProcessGroup&, const ProcessGroup&) = default;
};

}  // namespace lambcast
