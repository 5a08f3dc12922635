// The keys that every cluster description needs.
#pragma once

#include "sim/base/required_keys.h"

namespace lambcast {

inline const std::vector<RequiredKey> required_cluster_keys{
    {"", "name"},
    {"", "device"},
    {"node", "gpus"},
    {"node", "gpu_peers"},
    {"node", "gpu_link"},
    {"node", "gpu_nic", "gpu_peers", {"nvlink", "nvlink-mesh"}},
    {"nic", "count"},
    {"nic", "network"},
    {"nic", "nominal"},
    {"nic", "bandwidth"},
    {"fabric", "nodes_per_leaf", "kind", {"fat-tree", "rail-optimised", "dragonfly"}},
    {"fabric", "routers_per_group", "kind", {"dragonfly"}},
    {"fabric", "dimensions", "kind", {"torus"}}};

}  // namespace lambcast
