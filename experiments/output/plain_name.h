// Displayed names of keys and costs: "NIC bandwidth" for cluster.nic.bandwidth, "memory rate" for
// the cost memory_rate. --set and JSON use the keys.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns the plain name of a key of a cluster, a device or a run.
std::string plain_name(std::string_view key);

// Returns the plain name of a cost among the sources of a forecast.
std::string plain_cost(std::string_view cost);

// Formats a key as "NIC bandwidth (cluster.nic.bandwidth)"; returns the key alone if it has no
// other name.
std::string name_with_key(std::string_view key);

}  // namespace lambcast
