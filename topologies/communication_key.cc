#include "topologies/communication_key.h"

#include <functional>
#include <tuple>
#include <type_traits>

namespace lambcast {
namespace {

// Lists the members of each description. A structured binding with a member missing does not
// compile.

auto members(const Provenance& all) {
  const auto& [kind, source] = all;
  return std::tie(kind, source);
}

template <typename T>
auto members(const Sourced<T>& all) {
  const auto& [value, provenance] = all;
  return std::tie(value, provenance);
}

auto members(const PortQueueSpec& all) {
  const auto& [depth, rto_min] = all;
  return std::tie(depth, rto_min);
}

auto members(const FabricSpec& all) {
  const auto& [kind, nodes_per_leaf, oversubscription, dimensions, routers_per_group] = all;
  return std::tie(kind, nodes_per_leaf, oversubscription, dimensions, routers_per_group);
}

auto members(const ProtocolSpec& all) {
  const auto& [name, base, local_hop, network_hop, tree_base, tree_local_hop, tree_network_hop,
               efficiency, largest, slices, alone_base, alone_local_hop, node_cap, channel_rate] =
      all;
  return std::tie(name, base, local_hop, network_hop, tree_base, tree_local_hop, tree_network_hop,
                  efficiency, largest, slices, alone_base, alone_local_hop, node_cap, channel_rate);
}

auto members(const NvlsSpec& all) {
  const auto& [base, network_hop, efficiency, chunk] = all;
  return std::tie(base, network_hop, efficiency, chunk);
}

auto members(const LibrarySpec& all) {
  const auto& [rules, link_efficiency, nic_efficiency, single_gpu_efficiency, tree_efficiency,
               all_to_all_efficiency, slice, queue_ahead, message_overhead, reported_latency,
               flow_cap, connections, all_reduce, all_reduce_from, minor_version, algorithms, sharp,
               pxn, min_ctas, max_ctas, threads, ll128_threads, tree_threshold, protocols,
               of_messages, nvls] = all;
  return std::tie(rules, link_efficiency, nic_efficiency, single_gpu_efficiency, tree_efficiency,
                  all_to_all_efficiency, slice, queue_ahead, message_overhead, reported_latency,
                  flow_cap, connections, all_reduce, all_reduce_from, minor_version, algorithms,
                  sharp, pxn, min_ctas, max_ctas, threads, ll128_threads, tree_threshold, protocols,
                  of_messages, nvls);
}

auto members(const Calibration::Range& all) {
  const auto& [low, high] = all;
  return std::tie(low, high);
}

auto members(const Calibration::MeasuredNodes& all) {
  const auto& [gpus_per_node, nodes] = all;
  return std::tie(gpus_per_node, nodes);
}

auto members(const Calibration::Band& all) {
  const auto& [below, low, high, algorithms] = all;
  return std::tie(below, low, high, algorithms);
}

auto members(const Calibration& all) {
  const auto& [source, another_machine, preset, backend, operations, protocols, sizes, layouts,
               bands] = all;
  return std::tie(source, another_machine, preset, backend, operations, protocols, sizes, layouts,
                  bands);
}

auto members(const Departure& all) {
  const auto& [within_node, between_nodes, choice, from_effective_nic, keys] = all;
  return std::tie(within_node, between_nodes, choice, from_effective_nic);
}

// The device is included, since NCCL tunes by its generation.
auto members(const Cluster& all) {
  const auto& [name, description, device, device_stands_for, origin, gpus_per_node, max_nodes,
               gpu_peers, gpu_link, gpu_nic, host_link, host_memory, host_capacity, nics, network,
               nic_nominal, nic_bandwidth, nic_limit, exceeded_name_plate, states_name_plate,
               nic_burst, port_queue, fabric, nccl, mpi, host_copy, stack, program,
               usd_per_gpu_hour, calibration, departure] = all;
  return std::tie(device, gpus_per_node, gpu_peers, gpu_link, gpu_nic, host_link, nics, network,
                  nic_nominal, nic_bandwidth, nic_limit, exceeded_name_plate, states_name_plate,
                  nic_burst, port_queue, fabric, nccl, mpi, calibration, departure);
}

// Hashes of values other than descriptions: numbers, words, optional and repeated values.

std::size_t hash_of(const Duration& value) { return std::hash<std::int64_t>()(value.ps()); }
std::size_t hash_of(const std::string& value) { return std::hash<std::string>()(value); }

// Hashes the address, since operator== compares addresses.
std::size_t hash_of(const std::shared_ptr<const Calibration>& value) {
  return std::hash<std::shared_ptr<const Calibration>>()(value);
}

template <typename Tag>
std::size_t hash_of(const Amount<Tag>& value) {
  return std::hash<double>()(value.value());
}

template <typename T>
std::size_t hash_of(const T& all);

template <typename T>
std::size_t hash_of(const std::optional<T>& value) {
  return value ? 31 + hash_of(*value) : 0;
}

template <typename T>
std::size_t hash_of(const std::vector<T>& values) {
  std::size_t hash = values.size();
  for (const T& value : values) hash = hash * 31 + hash_of(value);
  return hash;
}

template <typename T>
std::size_t hash_of(const T& all) {
  if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
    return std::hash<T>()(all);
  } else {
    return std::apply(
        [](const auto&... each) {
          std::size_t hash = 0;
          ((hash = hash * 1000003 + hash_of(each)), ...);
          return hash;
        },
        members(all));
  }
}

}  // namespace

std::size_t hash_of_communication(const Cluster& cluster) { return hash_of(cluster); }

bool same_communication(const Cluster& a, const Cluster& b) { return members(a) == members(b); }

}  // namespace lambcast
