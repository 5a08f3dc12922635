#include "validate/calibrate/kept_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

bool has_trees(const Measurement& table, const Cluster& base) {
  return table.operation == Operation::all_reduce && nodes_of(table, base) > 1 &&
         table.algorithm.value_or("tree") == "tree";
}

// Part of the deviation of a ring's share of the NICs that trees and NVLS have in common with it.
// After a fit of the machine, logarithms of the errors of two operations correlate by 0.11 to 0.53
// (three RDMA and three TCP machines). One cluster of B200 fills 0.77 of its NICs with rings and
// 0.96 with NVLSTree.
constexpr double common_to_algorithms = 0.3;

}  // namespace

std::vector<FittedParameter> kept_shares(const Cluster& base, std::span<const Measurement> tables,
                                         Backend backend,
                                         const std::vector<FittedParameter>& fitted) {
  const auto rings = std::ranges::find_if(
      fitted, [](const auto& one) { return one.of.key == "nccl.nic_efficiency"; });
  if (is_mpi(backend) || base.network != NetworkKind::rdma || rings == fitted.end() ||
      std::ranges::any_of(tables, [&](const auto& table) { return has_trees(table, base); }))
    return {};
  const double before = base.nccl.tree_efficiency.value;
  FittedParameter trees{{"nccl.tree_efficiency", Unit::share, before, 0.2, 2, 0}};
  trees.value =
      before * std::pow(base.nccl.nic_efficiency.value / rings->value, 1 - common_to_algorithms);
  trees.low = trees.high = trees.value;
  return {trees};
}

std::vector<KeptLatency> kept_latencies(const Cluster& base, std::span<const Measurement> tables,
                                        Backend backend) {
  std::vector<KeptLatency> kept;
  const auto several = [&](const Measurement& table) { return nodes_of(table, base) > 1; };
  if (!is_mpi(backend) && std::any_of(tables.begin(), tables.end(), several) &&
      std::none_of(tables.begin(), tables.end(),
                   [&](const Measurement& table) { return has_trees(table, base); }))
    for (const ProtocolSpec& protocol : base.nccl.protocols)
      kept.push_back(
          {fmt::format("nccl.{}.tree_network_hop", protocol.name), protocol.tree_network_hop});
  const auto on_one_node = [&](const Measurement& table) { return nodes_of(table, base) == 1; };
  if (std::any_of(tables.begin(), tables.end(), on_one_node)) return kept;
  for (const ProtocolSpec& protocol : library_of(base, backend).protocols) {
    const std::string name = fmt::format("{}.{}.", traits_of(backend).word, protocol.name);
    kept.push_back({name + "alone_base", protocol.alone_base.value_or(protocol.base)});
    kept.push_back(
        {name + "alone_local_hop", protocol.alone_local_hop.value_or(protocol.local_hop)});
  }
  return kept;
}

}  // namespace lambcast::validate
