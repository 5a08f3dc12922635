// How an optimizer sees the parameters: the flat groups a wrapper makes of them, the padded buffers
// that compressed_allreduce is called on, and the copies between GPU and host that its mpi backend
// makes.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Elements of each parameter group as a wrapper flattens it, its padding included.
std::vector<std::int64_t> flat_groups(const TrainingPlan& training);

// Padded sizes of the buffers that compressed_allreduce is called on, in order: each a multiple of
// n * lcm(n, 8) for n ranks that exchange. If each has a share of the elements, of that share.
std::vector<std::int64_t> compressed_buffers(const TrainingPlan& training);

// Copies between GPU and host memory: the cluster's own figures, else the device profile's. A
// cluster's figure for MPI's staging is one rate for both directions.
struct HostCopies {
  Sourced<Bandwidth> pageable_to_host, pageable_to_device;  // numpy buffers of mpi.py
  Sourced<Bandwidth> staged_to_host, staged_to_device;      // MPI's own pinned buffers
};
HostCopies host_copies(const Cluster& cluster, const Device& device);

}  // namespace lambcast
