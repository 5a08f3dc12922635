#include "topologies/communication_key.h"

#include <catch2/catch.hpp>
#include <set>

namespace lambcast {
namespace {

const Overrides same{{"name", "another"},
                     {"description", "another"},
                     {"device_stands_for", "another"},
                     {"usd_per_gpu_hour", "12.34"},
                     {"max_nodes", "16"},
                     {"stack.compute_scale", "2"},
                     {"host_copy.pageable_to_host", "1 GB/s"}};

const Overrides different{{"device", "v100-32g"},
                          {"node.gpus", "4"},
                          {"node.gpu_link", "100 GB/s"},
                          {"node.gpu_nic", "9 GB/s"},
                          {"node.host_link", "9 GB/s"},
                          {"nic.count", "2"},
                          {"nic.nominal", "400 Gbit/s"},
                          {"nic.bandwidth", "90 Gbit/s"},
                          {"nccl.version", "2.12"},
                          {"nccl.link_efficiency", "0.3"},
                          {"nccl.nic_efficiency", "0.3"},
                          {"nccl.single_gpu_efficiency", "0.3"},
                          {"nccl.tree_efficiency", "0.3"},
                          {"nccl.slice", "1 MB"},
                          {"nccl.message_overhead", "9 us"},
                          {"nccl.reported_latency", "9 us"},
                          {"nccl.flow_cap", "1 GB/s"},
                          {"nccl.all_reduce", "ring"},
                          {"nccl.max_ctas", "3"},
                          {"nccl.threads", "128"},
                          {"nccl.ll128_threads", "320"},
                          {"nccl.Simple.channel_rate", "9 GB/s"},
                          {"nccl.sharp", "true"},
                          {"nccl.pxn", "false"},
                          {"nccl.protocols", "LL"},
                          {"nccl.Simple.base", "9 us"},
                          {"nccl.LL.local_hop", "9 us"},
                          {"nccl.LL.tree_network_hop", "9 us"},
                          {"nccl.LL128.efficiency", "0.3"},
                          {"nccl.Simple.node_cap", "9 GB/s"},
                          {"mpi.nic_efficiency", "0.3"},
                          {"mpi.queue_ahead", "1 MB"}};

TEST_CASE("communication key: names, prices and software stacks are not part of it") {
  const Cluster cluster = load_cluster("dgx-a100-80g", {});
  for (const auto& change : same) {
    INFO(change.first);
    const Cluster other = load_cluster("dgx-a100-80g", {change});
    CHECK(other != cluster);
    CHECK(same_communication(other, cluster));
    CHECK(hash_of_communication(other) == hash_of_communication(cluster));
  }
}

TEST_CASE("communication key: each key that collectives read changes the hash") {
  Cluster cluster = load_cluster("dgx-a100-80g", {});
  cluster.calibration.reset();  // so that only the keys differ
  std::set<std::size_t> hashes{hash_of_communication(cluster)};
  std::vector<Overrides> all{{{"nccl.flow_cap", "2 GB/s"}, {"nccl.connections", "3"}},
                             {{"nccl.version", "2.4"}, {"nccl.tree_threshold", "1 MB"}}};
  for (const auto& change : different) all.push_back({change});
  for (const Overrides& changes : all) {
    INFO(changes.back().first);
    Cluster other = load_cluster("dgx-a100-80g", changes);
    other.calibration.reset();
    CHECK(!same_communication(other, cluster));
    CHECK(hashes.insert(hash_of_communication(other)).second);
  }
}

TEST_CASE("communication key: the calibration and the evidence of rates are part of it") {
  const Cluster cluster = load_cluster("dgx-a100-80g", {});
  Cluster other = cluster;
  other.nic_bandwidth.provenance.kind = Kind::assumed;
  REQUIRE(cluster.nic_bandwidth.provenance.kind != Kind::assumed);
  CHECK(!same_communication(other, cluster));
  CHECK(hash_of_communication(other) != hash_of_communication(cluster));
  other = cluster;
  other.fabric.oversubscription.value = 4;
  CHECK(!same_communication(other, cluster));
  CHECK(hash_of_communication(other) != hash_of_communication(cluster));
  other = cluster;
  REQUIRE(other.calibration);
  other.calibration->bands.front().high *= 2;
  CHECK(!same_communication(other, cluster));
  CHECK(hash_of_communication(other) != hash_of_communication(cluster));
}

}  // namespace
}  // namespace lambcast
