// Names for people in place of keys: "NIC bandwidth" for cluster.nic.bandwidth, "memory rate" for
// the cost memory_rate. --set and JSON take the keys.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns the plain name of a key of a cluster, a device or a run.
std::string plain_name(std::string_view key);

// Returns the plain name of a cost among the sources of a forecast.
std::string plain_cost(std::string_view cost);

// "NIC bandwidth (cluster.nic.bandwidth)"; the key alone if it is the name already.
std::string name_with_key(std::string_view key);

}  // namespace lambcast
