#include "validate/calibrate/kept_values.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "topologies/cluster.h"
#include "topologies/collective_forecast.h"

namespace lambcast::validate {
namespace {

Measurement table_of(Operation operation) {
  Measurement table;
  table.operation = operation;
  table.ranks = 16;
  table.nodes = 2;
  table.gpus_per_node = 8;
  return table;
}

FittedParameter fitted_to(double share) {
  FittedParameter parameter;
  parameter.of.key = "nccl.nic_efficiency";
  parameter.value = share;
  return parameter;
}

TEST_CASE("kept values: trees keep most of their share of the NICs if only rings were measured") {
  const Cluster base = load_cluster("hgx-b200-ndr", {});
  const double before = base.nccl.nic_efficiency.value, after = 0.8 * before;
  const std::vector<FittedParameter> fitted{fitted_to(after)};
  const std::vector<Measurement> rings{table_of(Operation::all_gather)};
  const auto kept = kept_shares(base, rings, Backend::nccl, fitted);
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].of.key == "nccl.tree_efficiency");
  CHECK(kept[0].value == Approx(base.nccl.tree_efficiency.value * std::pow(1 / 0.8, 0.7)));
  // The rate of trees through a NIC then moves by 0.3 of the change of rings.
  CHECK(after * kept[0].value / (before * base.nccl.tree_efficiency.value) ==
        Approx(std::pow(0.8, 0.3)));
  const std::vector<Measurement> trees{table_of(Operation::all_gather),
                                       table_of(Operation::all_reduce)};
  CHECK(kept_shares(base, trees, Backend::nccl, fitted).empty());
  CHECK(kept_shares(base, rings, Backend::nccl, {}).empty());
  CHECK(kept_shares(base, rings, Backend::mpi_host, fitted).empty());
  CHECK(kept_shares(load_cluster("alps-gh200-tcp", {}), rings, Backend::nccl, fitted).empty());
}

// A NIC is no faster for a tree than its nominal rate.
TEST_CASE("kept values: trees may be faster than rings, up to the nominal rate of the NICs") {
  const auto rate = [](const char* tree) {
    const Cluster cluster = load_cluster(
        "hgx-b200-ndr", {{"nccl.nic_efficiency", "0.5"}, {"nccl.tree_efficiency", tree}});
    return transport_of(cluster, Backend::nccl).protocols.back().tree_efficiency *
           cluster.nccl.nic_efficiency.value * cluster.nic_bandwidth.value;
  };
  const Cluster base = load_cluster("hgx-b200-ndr", {});
  CHECK(rate("1.2").value() == Approx(0.6 * base.nic_bandwidth.value.value()));
  CHECK(rate("2").value() <= base.nic_nominal.value.value() * (1 + 1e-9));
}

}  // namespace
}  // namespace lambcast::validate
