// Mechanisms that decide the rate of collectives on machines without tables, in closed form.
#include <catch2/catch.hpp>
#include <cmath>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

double seconds(const std::string& preset, const Overrides& overrides, Op op, int gpus, double bytes,
               const char* algorithm = "") {
  CollectiveSetting setting;
  setting.op = op;
  setting.algorithm = algorithm;
  const Cluster cluster = load_cluster(preset, overrides);
  setting.group.ranks = gpus;
  setting.group.per_node = std::min(gpus, cluster.gpus_per_node);
  CollectiveSeries series = prepare(cluster, setting);
  return forecast(series, Bytes(bytes)).time.s();
}

TEST_CASE("uncalibrated rates: what is taken from another preset's network is as there") {
  const LibrarySpec source = load_cluster("hgx-h100-ndr", {}).nccl;
  for (const char* name : {"h200-ndr", "h100-500w-ndr"}) {
    const LibrarySpec taken = load_cluster(name, {}).nccl;
    INFO(name);
    CHECK(taken.nic_efficiency.value == source.nic_efficiency.value);
    CHECK(taken.link_efficiency.value == source.link_efficiency.value);
    CHECK(taken.tree_efficiency.value == source.tree_efficiency.value);
    CHECK(taken.slice->value == source.slice->value);
    CHECK(taken.nvls->base.value == source.nvls->base.value);
    CHECK(taken.nvls->network_hop.value == source.nvls->network_hop.value);
    CHECK(taken.nvls->efficiency.value == source.nvls->efficiency.value);
    for (std::size_t i = 0; i < source.protocols.size(); ++i) {
      CHECK(taken.protocols[i].base.value == source.protocols[i].base.value);
      CHECK(taken.protocols[i].local_hop.value == source.protocols[i].local_hop.value);
      CHECK(taken.protocols[i].network_hop.value == source.protocols[i].network_hop.value);
      CHECK(taken.protocols[i].tree_network_hop.value ==
            source.protocols[i].tree_network_hop.value);
      CHECK(taken.protocols[i].efficiency.value == source.protocols[i].efficiency.value);
    }
  }
}

}  // namespace
}  // namespace lambcast
