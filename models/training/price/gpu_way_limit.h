// Notes on two limits: links of a GPU that are slower than its NICs, and rates above a NIC's name
// plate.
//
// A ring enters and leaves a node by one GPU for each NIC, so a NIC carries at most what the path
// between that GPU and the NICs carries: `node.gpu_nic`, or `node.gpu_link` if GPUs communicate
// over PCIe. Several NICs of one GPU share its path. Most presets assume this value.
#pragma once

#include <optional>

#include "models/finding.h"
#include "sim/base/units.h"

namespace lambcast {

struct Cluster;

// Returns the nic.bandwidth above which a faster NIC does not make NCCL's rings faster; nothing if
// the NIC itself is the limit.
std::optional<Bandwidth> gpu_way_limit(const Cluster& cluster, int nodes);

// Returns the same limit as a note.
std::optional<Finding> find_gpu_way_limit(const Cluster& cluster, int nodes);

// Returns a note if --set states a rate above the name plate of the description's NIC.
std::optional<Finding> find_above_name_plate(const Cluster& cluster);

}  // namespace lambcast
