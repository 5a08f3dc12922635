#include "models/training/price/gpu_way_limit.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;

Duration ring(const Cluster& cluster) {
  const int gpus = cluster.gpus_per_node;
  CollectiveSeries series =
      prepare(cluster, {Op::all_reduce, {2 * gpus, gpus}, Backend::nccl, "ring", "Simple"});
  return forecast(series, Bytes(1 << 30)).time;
}

TEST_CASE(
    "nic limit: if the path of a GPU is the limit, a faster NIC is no faster, and a note says so") {
  const auto with = [](const char* name, double bit_per_s) {
    return load_cluster(
        name, {{"nic.count", "1"}, {"nic.bandwidth", fmt::format("{} bit/s", bit_per_s)}});
  };
  for (const char* name :
       {"dgx2h-v100", "dgx-a100-80g", "hgx-h100-ndr", "a100-pcie", "commodity-100gbe"}) {
    INFO(name);
    const Cluster fast = with(name, 1e13);
    const auto limit = gpu_way_limit(fast, 2);
    REQUIRE(limit);
    const double at = limit->value() * 8;
    CHECK(ring(with(name, at * 1.01)) / ring(with(name, at * 4)) == Approx(1).epsilon(1e-3));
    CHECK_FALSE(gpu_way_limit(with(name, at * 0.99), 2));
    // Over sockets, the streams may be slower than the path of a GPU, so only RDMA is checked.
    if (fast.network == NetworkKind::rdma)
      CHECK(ring(with(name, at * 0.8)) > ring(with(name, at)).scaled(1.05));
    CHECK_FALSE(gpu_way_limit(fast, 1));
  }
  const auto finding = find_gpu_way_limit(with("dgx2h-v100", 340e9), 2);
  REQUIRE(finding);
  CHECK_THAT(finding->message, Contains("node.gpu_nic") && Contains("(assumed)"));
}

TEST_CASE("nic limit: a note reports a rate above the name plate as that of another NIC") {
  const auto message = [](const Overrides& overrides) {
    const auto finding = find_above_name_plate(load_cluster("commodity-10gbe", overrides));
    return finding ? finding->message : "";
  };
  CHECK(message({}).empty());
  CHECK(message({{"nic.bandwidth", "9 Gbit/s"}}).empty());
  CHECK_THAT(message({{"nic.bandwidth", "10GB/s"}}),
             Contains("nic.bandwidth 80 Gbit/s is above this NIC's nominal 10 Gbit/s: taken as "
                      "another NIC; did you mean 10 Gbit/s?"));
  CHECK_THAT(message({{"nic.bandwidth", "40 Gbit/s"}}),
             Contains("taken as another NIC") && !Contains("did you mean"));
  CHECK(message({{"nic.bandwidth", "40 Gbit/s"}, {"nic.nominal", "40 Gbit/s"}}).empty());
}

}  // namespace
}  // namespace lambcast
