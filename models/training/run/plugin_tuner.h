// A network plugin may bring its own tuner, which chooses NCCL's algorithm and protocol instead of
// NCCL's rule. AWS's on p5 instances (Hopper over EFA) has all-reduces of 8 GPUs a node use LL128
// in trees up to some 30 MiB on 16 ranks and up to 400 MiB on 2,048, then in rings
// (aws-ofi-nccl src/tuner/nccl_ofi_regions.c). A description of such a machine that leaves LL128
// out is fitted with LL in its place: right where its tables are, less so elsewhere.
#pragma once

#include <optional>

#include "models/finding.h"

namespace lambcast {

struct Cluster;

// A note where EFA's NICs (nccl.reported_latency) join Hopper or later (nccl.nvls) over several
// nodes, and LL128 is not among nccl.protocols.
std::optional<Finding> find_plugin_tuner(const Cluster& cluster, int nodes);

}  // namespace lambcast
