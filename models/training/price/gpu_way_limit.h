// Limits on what a NIC carries other than its own rate, and rates above its name plate.
//
// A ring enters and leaves a node by one GPU for each NIC, so no NIC carries more of it than the
// way of that GPU to the NICs: `node.gpu_nic`, or `node.gpu_link` if GPUs meet over PCIe. Several
// NICs of one GPU share its way. Presets mostly assume it.
#pragma once

#include <optional>

#include "models/finding.h"
#include "sim/base/units.h"

namespace lambcast {

struct Cluster;

// The nic.bandwidth beyond which a faster NIC is no faster to NCCL's rings; none if its own rate is
// the limit.
std::optional<Bandwidth> gpu_way_limit(const Cluster& cluster, int nodes);

// The same as a note that names the limit.
std::optional<Finding> find_gpu_way_limit(const Cluster& cluster, int nodes);

// A note for a rate that --set states above the name plate of the description's NIC.
std::optional<Finding> find_above_name_plate(const Cluster& cluster);

}  // namespace lambcast
