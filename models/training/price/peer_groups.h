// Groups that make the same call at the same time on other nodes.
//
// A stage of a pipeline lies on some nodes. A group of its ranks, with its siblings
// (process_group.h), covers part of them; its peers cover the rest. They meet in the fabric alone:
// pairs of nodes that pass activations share the uplinks of an oversubscribed leaf.
#pragma once

#include <vector>

#include "models/parallel/parallel_layout.h"
#include "sim/collectives/placement.h"

namespace lambcast {

// Returns the nodes of each stage, in ascending order; none for a stage whose ranks do not lie in
// the same slots of all its nodes.
std::vector<std::vector<int>> nodes_by_stage(const parallel::RankGrid& grid);

// Returns the distances, in nodes, from a group at `first` to all groups that cover `nodes`, itself
// first: zero alone where there are none.
std::vector<int> peer_distances(const ProcessGroup& group, int first,
                                const std::vector<int>& nodes);

}  // namespace lambcast
