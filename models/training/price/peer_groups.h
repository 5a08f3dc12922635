// Groups that make the same call at the same time on other nodes.
//
// A stage of a pipeline lies on some nodes. A group of its ranks, with its siblings
// (process_group.h), covers part of them; its peers cover the other nodes. They share only the
// fabric: pairs of nodes that pass activations share the uplinks of an oversubscribed leaf.
#pragma once

#include <vector>

#include "models/parallel/parallel_layout.h"
#include "sim/collectives/placement.h"

namespace lambcast {

// Returns the nodes of each stage, in ascending order. A stage whose ranks occupy different slots
// on its nodes has none.
std::vector<std::vector<int>> nodes_by_stage(const parallel::RankGrid& grid);

// Returns the distances, in nodes, from a group at `first` to itself (0) and to its peers, which
// together cover `nodes`. With no `nodes`, returns only 0.
std::vector<int> peer_distances(const ProcessGroup& group, int first,
                                const std::vector<int>& nodes);

}  // namespace lambcast
