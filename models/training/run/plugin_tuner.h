// A network plugin may contain a tuner that chooses NCCL's algorithm and protocol instead of NCCL's
// rule. AWS's tuner for p5 instances (Hopper over EFA) selects LL128 for all-reduces of 8 GPUs per
// node: in trees up to some 30 MiB on 16 ranks and up to 400 MiB on 2,048 ranks, above that in
// rings (aws-ofi-nccl src/tuner/nccl_ofi_regions.c). A description of such a machine without LL128
// is fitted with LL in its place, which is less accurate outside its tables.
#pragma once

#include <optional>

#include "models/finding.h"

namespace lambcast {

struct Cluster;

// Returns a note if EFA NICs (nccl.reported_latency) and Hopper or later GPUs (nccl.nvls) are used
// over several nodes, and nccl.protocols lacks LL128.
std::optional<Finding> find_plugin_tuner(const Cluster& cluster, int nodes);

}  // namespace lambcast
