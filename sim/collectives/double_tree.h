// The double binary tree of NCCL (src/graph/trees.cc) over the nodes of a group: nodes form a
// binary tree in which leaves and inner nodes alternate. A second tree, mirrored or shifted by one,
// swaps these roles.
//
// Every node has a different position in the trees, so no single part of a machine (machine.h)
// represents all. The rate of a flow is limited by one of its links, and every link belongs to one
// part. The load of a link depends on the traffic between that part's nodes and ports of other
// parts, not on the peer. So parts with equal link loads are one kind. A kind whose loads are
// nowhere above those of another kind ends no later. Only the other kinds are written out, one part
// of each, with the half of every flow that lies in it. Full leaves of a power of two have two
// kinds, which are mirrored, at any number of leaves.
//
// The flows between nodes have equal bytes, so the last of them ends on the link with the highest
// load relative to its capacity, also under max-min sharing (fair_share.h), except for links shared
// with flows inside a node. If it is known which nodes share an uplink, a few of these kinds
// suffice: those with the highest load of an uplink in each direction, and the highest loads of a
// node. Among the leaves of 384 nodes, 19 kinds have the highest load of some link, and 2 suffice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace lambcast {

struct TreeEdge {
  int child;
  int parent;
};

// Returns the edges of both trees, in the order of the nodes of the first.
std::vector<TreeEdge> edges_of_both_trees(int nodes);

// Parts of equal size: the number of one part of every kind that is written out, and the edges that
// begin or end in these parts.
struct BusiestParts {
  std::vector<int> parts;
  std::vector<TreeEdge> edges;
};

// Returns the kinds whose loads no other kind exceeds, or a sufficient subset of them if `uplinks`
// (placement.h) are given. The result is cached, since every size and every tree algorithm uses it.
std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part,
                                                  const std::vector<std::uint32_t>& uplinks = {});

}  // namespace lambcast
