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
// The flows between nodes have equal bytes, so the last of them ends on the link with the most load
// for its capacity, under max-min sharing as well (fair_share.h), except for links shared with
// flows inside a node. If it is known which nodes share an uplink, a few of these kinds suffice:
// they hold the highest load of an uplink each way, and the highest loads of a node. Of the leaves
// of 384 nodes, 19 kinds exceed each other somewhere, and 2 suffice.
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

// Parts of equal size, by number: one of every kind that is written out, and the edges that begin
// or end in them.
struct BusiestParts {
  std::vector<int> parts;
  std::vector<TreeEdge> edges;
};

// Returns the kinds whose loads no other kind exceeds, or those of them that suffice for `uplinks`
// (placement.h) if any are given. Cached: every size and every algorithm of trees needs the same.
std::shared_ptr<const BusiestParts> busiest_parts(int nodes, int part,
                                                  const std::vector<std::uint32_t>& uplinks = {});

}  // namespace lambcast
