#include "models/training/price/gpu_way_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topologies/cluster.h"

namespace lambcast {
namespace {

// A rate in bytes typed as bits differs from the name plate by a factor of 8, within this relative
// margin for losses.
constexpr double near_eight = 0.1;

bool is_pcie(const Cluster& cluster) { return cluster.gpu_peers == GpuPeers::pcie; }

}  // namespace

std::optional<Bandwidth> gpu_way_limit(const Cluster& cluster, int nodes) {
  if (nodes == 1) return std::nullopt;
  const int gpus = cluster.gpus_per_node;
  const NodeSpec node = machines_of(cluster, Backend::nccl, {nodes * gpus, gpus}).node();
  const double nics_of_a_gpu = std::max(1.0, static_cast<double>(node.nics) / node.gpus);
  const Bandwidth way = node.gpu_nic * (1 / nics_of_a_gpu);
  if (way >= node.nic) return std::nullopt;
  return cluster.nic_bandwidth.value * (way / node.nic);
}

std::optional<Finding> find_gpu_way_limit(const Cluster& cluster, int nodes) {
  const auto limit = gpu_way_limit(cluster, nodes);
  if (!limit) return std::nullopt;
  const bool pcie = is_pcie(cluster);
  const Sourced<Bandwidth>& way = pcie ? cluster.gpu_link : cluster.gpu_nic;
  return Finding{Severity::note, "nic-limit",
                 fmt::format("a NIC beyond {} does not make NCCL's rings faster (here: {}), since "
                             "node.{} of {} ({}) limits the path from one GPU to its NICs",
                             to_text_bits(*limit), to_text_bits(cluster.nic_bandwidth.value),
                             pcie ? "gpu_link" : "gpu_nic", to_text_bits(way.value),
                             name_of(way.provenance.kind))};
}

std::optional<Finding> find_above_name_plate(const Cluster& cluster) {
  if (!cluster.exceeded_name_plate) return std::nullopt;
  const Bandwidth plate = *cluster.exceeded_name_plate, rate = cluster.nic_bandwidth.value;
  const bool bytes = std::abs(rate / plate / 8 - 1) < near_eight;
  return Finding{
      Severity::note, "nic-above-nominal",
      fmt::format("nic.bandwidth {} is above this NIC's nominal {}: taken as another "
                  "NIC{}",
                  to_text_bits(rate), to_text_bits(plate),
                  bytes ? fmt::format("; did you mean {}?", to_text_bits(rate * 0.125)) : "")};
}

}  // namespace lambcast
