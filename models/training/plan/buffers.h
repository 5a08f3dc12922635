// The parameters as an optimizer gets them: the flat groups that a wrapper makes, the padded
// buffers that compressed_allreduce is called on, and the copies between GPU and host that its mpi
// backend makes.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns the elements of each parameter group as a wrapper flattens it, with its padding.
std::vector<std::int64_t> flat_groups(const TrainingPlan& training);

// Returns the padded sizes of the buffers that compressed_allreduce is called on, in order. Each is
// a multiple of n * lcm(n, 8) for n exchanging ranks. If each rank has a share of the elements, the
// buffers are those of its share.
std::vector<std::int64_t> compressed_buffers(const TrainingPlan& training);

// Bandwidths of copies between GPU and host memory: the cluster's own figures, else the device
// profile's. A cluster's figure for MPI's staging is one rate for both directions.
struct HostCopies {
  Sourced<Bandwidth> pageable_to_host, pageable_to_device;  // numpy buffers of mpi.py
  Sourced<Bandwidth> staged_to_host, staged_to_device;      // MPI's own pinned buffers

  const Sourced<Bandwidth>& to_host(bool pinned) const {
    return pinned ? staged_to_host : pageable_to_host;
  }
  const Sourced<Bandwidth>& to_device(bool pinned) const {
    return pinned ? staged_to_device : pageable_to_device;
  }
};

// Rates of copies to the host and back. Copies that the passes wait for use pageable memory.
struct CopyRates {
  Sourced<Bandwidth> down, up;
  bool hidden = true;  // whether blocks hide the copies
};

HostCopies host_copies(const Cluster& cluster, const Device& device);

}  // namespace lambcast
