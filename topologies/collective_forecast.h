// One collective over a range of sizes on a described cluster: what `lambcast collective` prints,
// what `calibrate` fits and what `validate` holds against measured tables, all through here.
#pragma once

#include <string>
#include <vector>

#include "topologies/cluster.h"

namespace lambcast {

struct CollectiveSetting {
  Op op = Op::all_reduce;
  ProcessGroup group;
  Backend backend = Backend::nccl;
  std::string algorithm;  // empty: what the cluster forces, else as the library chooses
  std::string protocol;   // empty: as the library chooses
  bool expand = false;    // every rank and every round on its own
};

// A collective on its machine, prepared for many sizes.
struct CollectiveSeries {
  CollectiveRequest request;
  Machines machines;
  Transport transport;
};

// Returns the algorithm that a cluster file forces for an all_reduce, if it can run over this
// group; else nothing, and the library chooses.
std::string forced_algorithm(const LibrarySpec& library, Op op, const ProcessGroup& group);

CollectiveSeries prepare(const Cluster& cluster, const CollectiveSetting& setting);

// The analytic forecast of one size.
Collective forecast(CollectiveSeries& series, Bytes size);

// The analytic times of many sizes.
CollectiveCurve curve_of(const Cluster& cluster, const CollectiveSetting& setting);

// The messages of DeepSpeed's compressed_allreduce (sim/collectives/compressed_exchange.h) over an
// fp32 vector of `size`, one after another, kernels left out. Of the series' request, the group
// and `expand` count.
std::vector<Collective> compressed_exchange(CollectiveSeries& series, Backend backend, Bytes size);

}  // namespace lambcast
