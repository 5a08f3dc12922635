// One collective over a range of sizes on a described cluster. `lambcast collective`, `calibrate`
// and `validate` all use these functions.
#pragma once

#include <string>
#include <vector>

#include "topologies/cluster.h"

namespace lambcast {

struct CollectiveSetting {
  Op op = Op::all_reduce;
  ProcessGroup group;
  Backend backend = Backend::nccl;
  std::string algorithm;  // empty: forced by the cluster, else the library's choice
  std::string protocol;   // empty: the library's choice
  bool expand = false;    // every rank and every round is simulated
};

// A collective on its machine, prepared for many sizes.
struct CollectiveSeries {
  CollectiveRequest request;
  Machines machines;
  Transport transport;
};

// Returns the algorithm that a cluster file forces for an all_reduce if it supports this group.
// Otherwise the text is empty, and the library chooses.
std::string forced_algorithm(const LibrarySpec& library, Op op, const ProcessGroup& group);

CollectiveSeries prepare(const Cluster& cluster, const CollectiveSetting& setting);

// Returns the analytic forecast of one size.
Collective forecast(CollectiveSeries& series, Bytes size);

// Returns the curve of analytic times over size.
CollectiveCurve curve_of(const Cluster& cluster, const CollectiveSetting& setting);

// Returns the messages of DeepSpeed's compressed_allreduce (sim/collectives/compressed_exchange.h)
// of an fp32 vector of `size`, in sequence and without kernels. Only the group and `expand` of the
// series' request matter.
std::vector<Collective> compressed_exchange(CollectiveSeries& series, Backend backend, Bytes size);

}  // namespace lambcast
