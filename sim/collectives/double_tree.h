// The double binary tree of NCCL (src/graph/trees.cc) over the nodes of a group: nodes form a
// binary tree in which leaves and inner nodes alternate, and a second tree, mirrored or shifted by
// one, in which the roles are swapped.
//
// Every node has a place of its own in it, so no part of a machine (machine.h) stands for all. The
// rate of a flow is limited by one of its links, and every link belongs to one part. The load of a
// link follows from the traffic between that part's nodes and ports elsewhere; the peer does not
// matter. So parts that load their links alike are one kind. A kind none of whose loads is above
// those of another ends no later. Only the other kinds are written out, one part of each, with the
// half of every flow that lies in it. Full leaves of a power of two have two kinds, which are
// mirrored, at any number of leaves.
//
// The flows between nodes have equal bytes, so this holds under max-min sharing as well
// (fair_share.h), except for links shared with flows inside a node.
#pragma once

#include <memory>
#include <vector>

namespace lambcast {

struct TreeEdge {
  int child;
  int parent;
};

// Returns the edges of both trees, in the order of the nodes of the first.
std::vector<TreeEdge> edges_of_both_trees(int nodes);

// Parts of equal size, by number: one of every kind whose loads no other kind exceeds, and the
// edges that begin or end in them.
struct BusiestParts {
  std::vector<int> parts;
  std::vector<TreeEdge> edges;
};

// Cached: every size and every algorithm of trees needs the same.
std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part);

}  // namespace lambcast
