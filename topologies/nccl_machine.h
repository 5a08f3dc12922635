// The machine as NCCL's own cost model takes it (sim/collectives/nccl_tuning.h): the GPUs'
// generation by the name of their device profile, links by NCCL's own count of them, NICs by their
// name plate.
#pragma once

#include "topologies/cluster.h"

namespace lambcast {

NcclTuning nccl_machine(const Cluster& cluster);

}  // namespace lambcast
