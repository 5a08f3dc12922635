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

// Returns why nccl.sharp has no effect for groups with this number of GPUs on each of several
// nodes. Empty if it may have one, or if the description does not enable it.
std::string why_sharp_is_idle(const Cluster& cluster, int gpus_per_node);

}  // namespace lambcast
