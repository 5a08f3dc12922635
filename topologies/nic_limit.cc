#include "topologies/nic_limit.h"

#include <algorithm>
#include <cmath>

namespace lambcast {

Bandwidth nic_limit(const Cluster& cluster, const Table& description, const Overrides& overrides) {
  const auto is_set = [&](std::string_view key) {
    return std::ranges::find(overrides, key, &Overrides::value_type::first) != overrides.end();
  };
  const Bandwidth nominal = cluster.nic_nominal.value;
  if (!is_set("nic.bandwidth") || is_set("nic.nominal")) return nominal;
  const Table nic = description.table("nic");
  if (!nic.has("bandwidth")) return nominal;
  const Bandwidth asked = cluster.nic_bandwidth.value;
  const Bandwidth described = nic.get<Sourced<Bandwidth>>("bandwidth").value;
  const double share = asked / described;
  const double power = 1 + std::log10(std::max(1.0, nominal / described));
  return share < 1 ? std::max(asked, nominal * std::pow(share, power)) : nominal;
}

Duration least_time_on_nics(const Cluster& cluster, Bytes bytes) {
  return bytes / (cluster.nic_limit * cluster.nics);
}

}  // namespace lambcast
