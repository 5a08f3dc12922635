// Which clusters collectives cannot tell apart: what they take is found once for all of these.
//
// Equal are clusters of the same GPUs, wires, fabric, libraries and calibration, whatever their
// names, prices, sizes, software stacks and copies to the host. What both functions read is one
// list, and a member that joins Cluster does not compile before it is in the list or left out.
#pragma once

#include <cstddef>
#include <memory>

#include "topologies/cluster.h"

namespace lambcast {

// Returns a hash of everything that same_communication compares.
std::size_t hash_of_communication(const Cluster& cluster);
bool same_communication(const Cluster& a, const Cluster& b);

// For tables with clusters as keys; these are not empty.
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
