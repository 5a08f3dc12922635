// Equality of clusters with respect to collectives: the times of collectives are found once for all
// equal clusters.
//
// Clusters are equal if their GPUs, wires, fabric, libraries and calibration are equal. Names,
// prices, sizes, software stacks and copies to the host do not matter. Both functions read one list
// of members; a new member of Cluster does not compile until it is added to that list or marked as
// left out.
#pragma once

#include <cstddef>
#include <memory>

#include "topologies/cluster.h"

namespace lambcast {

// Returns a hash of everything that same_communication compares.
std::size_t hash_of_communication(const Cluster& cluster);
bool same_communication(const Cluster& a, const Cluster& b);

// Hash for tables with clusters as keys, which must not be null.
struct HashOfCommunication {
  std::size_t operator()(const std::shared_ptr<const Cluster>& cluster) const {
    return hash_of_communication(*cluster);
  }
};
struct SameCommunication {
  bool operator()(const std::shared_ptr<const Cluster>& a,
                  const std::shared_ptr<const Cluster>& b) const {
    return a == b || same_communication(*a, *b);
  }
};

}  // namespace lambcast
