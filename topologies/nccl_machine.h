// The machine as NCCL's own cost model takes it (sim/collectives/nccl_tuning.h): the GPUs'
// generation by the name of their device profile, links by NCCL's own count of them, NICs by their
// name plate.
#pragma once

#include <string>

#include "sim/base/table.h"
#include "topologies/cluster.h"

namespace lambcast {

NcclTuning nccl_machine(const Cluster& cluster);

// Throws Error (usage) if the description `root` of `cluster` has [nccl.nvls] for GPUs that cannot
// reduce in their NVSwitches. NVLink SHARP begins with Hopper.
void refuse_idle_nvls(const Table& root, const Cluster& cluster);

// Why nccl.sharp changes nothing for groups of so many GPUs on each of several nodes, in words for
// people; empty where it may, or nobody asked for it.
std::string why_sharp_is_idle(const Cluster& cluster, int gpus_per_node);

}  // namespace lambcast
