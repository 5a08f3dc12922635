// The machine in the form of NCCL's own cost model (sim/collectives/nccl_tuning.h): the GPUs'
// generation from the name of their device profile, links as NCCL counts them, NICs by their
// nominal rate.
#pragma once

#include <string>

#include "sim/base/table.h"
#include "topologies/cluster.h"

namespace lambcast {

NcclTuning nccl_machine(const Cluster& cluster);

// Throws Error (usage) if a description has [nccl.nvls] for GPUs whose NVSwitches cannot reduce:
// NVLink SHARP begins with Hopper. `root` is the text of `cluster`.
void refuse_idle_nvls(const Table& root, const Cluster& cluster);

// Returns why nccl.sharp has no effect for groups with this number of GPUs on each of several
// nodes. Empty if it may have an effect, or if the description does not enable it.
std::string why_sharp_is_idle(const Cluster& cluster, int gpus_per_node);

}  // namespace lambcast
