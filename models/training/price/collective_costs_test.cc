#include "models/training/price/collective_costs.h"

#include <catch2/catch.hpp>

#include "models/training/price/shared_network.h"

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
  const Duration first =
      time_on(costs, cluster_of({}));  // the cluster is destroyed after this call
  CHECK(time_on(costs, cluster_of({})) == first);
  CHECK(costs.counts().asked == 2);
  CHECK(costs.counts().planned == 1);
  CHECK(time_on(costs, cluster_of({{"nic.bandwidth", "100 Gbit/s"}})) > first);
  CHECK(costs.counts().planned == 2);
  CHECK(time_on(costs, cluster_of({{"nic.bandwidth", "100 Gbit/s"}})) > first);
  CHECK(costs.counts().planned == 2);
}

TEST_CASE("collective costs: clusters that differ only in names and prices share them") {
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

// Schedules are laid out once for all rates. A price must not depend on rates that were priced
// before.
TEST_CASE("collective costs: a price is independent of rates that were priced before") {
  int compared = 0;
  for (const char* preset : {"meta-h100-roce", "gcp-a3-mega", "perlmutter-a100", "selene-a100"}) {
    CollectiveCosts costs;
    for (const char* keys : {"nic.bandwidth=3 Gbit/s", "nic.bandwidth=200 Gbit/s",
                             "node.gpu_link=9 GB/s", "node.gpu_nic=5 GB/s",
                             "nccl.LL.node_cap=0.3 GB/s", "nccl.connections=3", "nic.count=1"}) {
      const std::string text = keys;
      const std::size_t at = text.find('=');
      Overrides overrides{{text.substr(0, at), text.substr(at + 1)}};
      if (preset == std::string("meta-h100-roce"))
        overrides.emplace_back("fabric.nodes_per_leaf", "4");
      const auto cluster = std::make_shared<const Cluster>(load_cluster(preset, overrides));
      for (const NetworkModel network : {NetworkModel::analytic, NetworkModel::flow})
        for (const ProcessGroup& group :
             {ProcessGroup{72, 8}, ProcessGroup{27, 4, 2}, ProcessGroup{12, 1, 4, 1, 4}})
          for (const Backend backend : {Backend::nccl, Backend::mpi_host})
            for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all}) {
              const auto price = [&](CollectiveCosts& by) {
                return by.cost({cluster, group, network, false}, backend, op, Bytes(3e7));
              };
              CollectiveCosts fresh;
              const CollectiveCost kept = price(costs), own = price(fresh);
              INFO(preset << " " << keys << " " << name_of(op) << " over " << group.ranks);
              CHECK(kept.time == own.time);
              CHECK(kept.algorithm == own.algorithm);
              CHECK(kept.traffic.sent_per_rank == own.traffic.sent_per_rank);
              ++compared;
            }
    }
  }
  CHECK(compared > 900);
}

// Sends of one size reuse the routes that were found for another size.
TEST_CASE("collective costs: a price does not depend on the sizes before") {
  std::size_t compared = 0;
  for (const char* preset : {"meta-h100-roce", "commodity-10gbe"}) {
    const auto cluster = std::make_shared<const Cluster>(
        load_cluster(preset, Overrides{{"fabric.kind", "fat-tree"},
                                       {"fabric.nodes_per_leaf", "4"},
                                       {"fabric.oversubscription", "2"}}));
    for (const NetworkModel network : {NetworkModel::analytic, NetworkModel::flow})
      for (const ProcessGroup& group :
           {ProcessGroup{72, 8}, ProcessGroup{71, 8}, ProcessGroup{12, 1, 4, 1, 4}})
        for (const Backend backend : {Backend::nccl, Backend::mpi_host})
          for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all, Op::broadcast}) {
            CollectiveCosts costs;
            for (const double size : {3e7, 0.0, 1.0, 4.0, 1e5, 7e8}) {
              if (size == 0 && op != Op::all_reduce) continue;  // a barrier
              const auto price = [&](CollectiveCosts& by) {
                return by.cost({cluster, group, network, false}, backend, op, Bytes(size));
              };
              CollectiveCosts fresh;
              const CollectiveCost kept = price(costs), own = price(fresh);
              INFO(preset << " " << name_of(op) << " of " << size << " over " << group.ranks);
              CHECK(kept.time == own.time);
              CHECK(kept.algorithm == own.algorithm);
              CHECK(kept.traffic.sent_per_rank == own.traffic.sent_per_rank);
              ++compared;
            }
          }
  }
  CHECK(compared > 500);
}

// GPU i of every second node, on a tree with oversubscription 2:1. With the groups on the other
// nodes, a leaf of 2 nodes sends 16 flows over 8 uplinks, so that each flow has half of a NIC's
// rate. On a leaf of 4 nodes, the ring of each of the 2 groups leaves from one node: 16 flows over
// 16 uplinks.
TEST_CASE("collective costs: a group shares uplinks with those on the nodes that it skips") {
  const auto seconds = [](const char* leaf, const char* oversubscription, int node_stride,
                          bool expand) {
    const auto cluster = cluster_of({{"fabric.kind", "fat-tree"},
                                     {"fabric.nodes_per_leaf", leaf},
                                     {"fabric.oversubscription", oversubscription}});
    CollectiveCosts costs;
    return costs
        .cost({cluster, {8, 1, 8, node_stride, 8}, NetworkModel::analytic, expand}, Backend::nccl,
              Op::all_reduce, Bytes(4e10), "ring")
        .time.s();
  };
  for (const bool expand : {false, true}) {
    const double alone = seconds("2", "1", 2, expand);
    CHECK(seconds("2", "2", 2, expand) == Approx(2 * alone).epsilon(0.01));
    CHECK(seconds("2", "4", 2, expand) == Approx(4 * alone).epsilon(0.01));
    CHECK(seconds("4", "2", 4, expand) == Approx(2 * alone).epsilon(0.01));
    CHECK(seconds("4", "2", 2, expand) == Approx(alone).epsilon(0.01));
    CHECK(seconds("4", "2", 1, expand) == Approx(alone).epsilon(0.01));
  }
}

// All nodes of a stage send to the next stage at once. Leaves have 8 nodes, and uplinks with the
// rate of 2 nodes. With stages of 8 nodes, all 8 send to the next leaf: each gets 1/4 of its rate.
// With stages of 4 nodes, the first half of a leaf sends to the second, within the leaf. The second
// half sends to the next leaf, and each of its nodes gets 1/2 of its rate.
TEST_CASE("collective costs: sends between stages share the uplinks of a leaf") {
  const auto seconds = [](const char* oversubscription, int stage_nodes, int first_node) {
    const auto cluster = cluster_of({{"fabric.kind", "fat-tree"},
                                     {"fabric.nodes_per_leaf", "8"},
                                     {"fabric.oversubscription", oversubscription}});
    CollectiveCosts costs;
    const ProcessGroup pair{2, 1, 1, stage_nodes, 8};
    return costs
        .cost({cluster, pair, NetworkModel::analytic, false, first_node}, Backend::nccl,
              Op::send_recv, Bytes(4e9))
        .time.s();
  };
  for (const int first_node : {0, 8}) {
    const double alone = seconds("1", 8, first_node);
    CHECK(seconds("4", 8, first_node) == Approx(4 * alone).epsilon(0.01));
    CHECK(seconds("4", 1, first_node) == Approx(alone).epsilon(0.01));
    CHECK(seconds("4", 1, first_node + 7) == Approx(alone).epsilon(0.01));
    CHECK(seconds("4", 4, first_node) == Approx(alone).epsilon(0.01));
    CHECK(seconds("4", 4, first_node + 4) == Approx(2 * alone).epsilon(0.01));
    CHECK(seconds("4", 16, first_node) == Approx(4 * alone).epsilon(0.01));
  }
}

// The flow model has the pairs of all nodes of a stage on one network.
TEST_CASE("collective costs: in either model, sends between stages share the uplinks of a leaf") {
  for (const char* const kind : {"fat-tree", "rail-optimised"})
    for (const int stage_nodes : {2, 4, 8, 16})
      for (const int stage : {0, 1, 2, 3}) {
        INFO(kind << ", stage " << stage << " on " << stage_nodes << " nodes");
        const auto cluster = cluster_of({{"fabric.kind", kind},
                                         {"fabric.nodes_per_leaf", "8"},
                                         {"fabric.oversubscription", "4"}});
        Call call{{2, 1, 1, stage_nodes, 8}, Backend::nccl, Op::send_recv, Bytes(4e9)};
        call.place.node = stage * stage_nodes;
        std::vector<int> nodes;
        for (int i = 0; i < stage_nodes; ++i) nodes.push_back(call.place.node + i);
        CollectiveCosts costs;
        const auto cost = [&](NetworkModel network) {
          return costs.cost({cluster, call.group, network, false, call.place.node}, call.backend,
                            call.op, call.bytes);
        };
        const CollectiveCost alone = cost(NetworkModel::flow);
        SharedNetwork& network = costs.shared_network(cluster, 5 * stage_nodes, 8);
        const SharedNetwork::Laid laid = network.lay(call, alone, nodes);
        const double growth = time_alone(*laid.with_peers, *network.topology()) / laid.alone;
        CHECK(cost(NetworkModel::analytic).time.s() ==
              Approx(alone.time.s() * growth).epsilon(0.02));
      }
}

TEST_CASE("collective costs: a collective that cannot be simulated fails at every request") {
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
