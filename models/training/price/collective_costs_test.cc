#include "models/training/price/collective_costs.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

std::shared_ptr<const Cluster> cluster_of(const Overrides& overrides) {
  return std::make_shared<const Cluster>(load_cluster("dgx-a100-80g", overrides));
}

Duration time_on(CollectiveCosts& costs, const std::shared_ptr<const Cluster>& cluster) {
  return costs
      .cost({cluster, {16, 8}, NetworkModel::analytic, false}, Backend::nccl, Op::all_reduce,
            Bytes(1e8))
      .time;
}

TEST_CASE("collective costs: clusters that are equal share them, whoever read them") {
  CollectiveCosts costs;
  const Duration first = time_on(costs, cluster_of({}));  // gone behind the call
  CHECK(time_on(costs, cluster_of({})) == first);
  CHECK(costs.counts().asked == 2);
  CHECK(costs.counts().planned == 1);
  CHECK(time_on(costs, cluster_of({{"nic.bandwidth", "100 Gbit/s"}})) > first);
  CHECK(costs.counts().planned == 2);
  CHECK(time_on(costs, cluster_of({{"nic.bandwidth", "100 Gbit/s"}})) > first);
  CHECK(costs.counts().planned == 2);
}

TEST_CASE("collective costs: clusters that differ in names and prices alone share them") {
  CollectiveCosts costs;
  const Duration first = time_on(costs, cluster_of({}));
  for (int cents = 100; cents < 200; ++cents)
    CHECK(time_on(costs, cluster_of({{"usd_per_gpu_hour", std::to_string(cents * 0.01)},
                                     {"name", "a" + std::to_string(cents)}})) == first);
  CHECK(costs.counts().asked == 101);
  CHECK(costs.counts().planned == 1);
}

TEST_CASE("collective costs: thousands of clusters come and go, each with its own") {
  CollectiveCosts costs;
  Cluster changing = load_cluster("dgx-a100-80g", {});
  const double rate = changing.nic_bandwidth.value.value();
  const auto at = [&](int i) {
    changing.nic_bandwidth.value = Bandwidth(rate / (1 + i * 1e-3));
    return time_on(costs, std::make_shared<const Cluster>(changing));
  };
  const Duration first = at(0), second = at(1);
  for (int i = 2; i < 5000; ++i) CHECK(at(i) > second);
  CHECK(at(0) == first);
  CHECK(at(1) == second);
}

TEST_CASE("collective costs: what cannot be simulated is so each time that it is asked for") {
  CollectiveCosts costs;
  const auto slow = cluster_of({{"nic.bandwidth", "1 kB/s"}});
  const auto ask = [&](NetworkModel network) {
    return costs.cost({slow, {16, 8}, network, false}, Backend::nccl, Op::all_reduce, Bytes(1e13))
        .time;
  };
  for (int times = 0; times < 3; ++times) {
    CHECK_THROWS_AS(ask(NetworkModel::analytic), TooLong);
    CHECK_THROWS_AS(ask(NetworkModel::flow), TooLong);
  }
  CHECK(costs.counts().planned == 6);
}

}  // namespace
}  // namespace lambcast
