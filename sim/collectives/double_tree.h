// The double binary tree of NCCL (src/graph/trees.cc) over the nodes of a group: nodes form a
// binary tree in which leaves and inner nodes alternate, and a second tree, mirrored or shifted by
// one, in which the roles are swapped.
//
// In it every node has a place of its own, so no part of a machine (machine.h) stands for all. But
// what a flow is left is left by one of its links, a link belongs to one part, and what it carries
// follows from what the nodes of that part send to which ports elsewhere, and what comes in to
// them; whoever is at the other end does not matter. So parts that load their links alike are one
// kind, and a kind none of whose loads is above those of another ends no later: the other kinds are
// written out, one part of each, with the half of every flow that lies in it. Full leaves of a
// power of two have two kinds, which are mirrored, however many there are.
//
// The flows between nodes have equal bytes, so that this holds under max-min sharing as well
// (fair_share.h), but for what they share with flows inside a node.
#pragma once

#include <memory>
#include <vector>

namespace lambcast {

struct TreeEdge {
  int child;
  int parent;
};

// Of both trees, in the order of the nodes of the first.
std::vector<TreeEdge> edges_of_both_trees(int nodes);

// Of parts of so many nodes each, by their number: one of every kind whose loads no other's exceed,
// and the edges that begin or end in them.
struct BusiestParts {
  std::vector<int> parts;
  std::vector<TreeEdge> edges;
};

// Remembered: every size and every algorithm of trees asks for the same.
std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part);

}  // namespace lambcast
