#include "validate/survey/own_host.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/temporary_folder.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

void write(const TemporaryFolder& root, const std::string& file, const std::string& text) {
  const auto path = root.path() / file;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text << "\n";
}

Cluster loaded(const TemporaryFolder& root, const DerivedCluster& derived) {
  std::ofstream(root.path() / "derived.toml") << derived.toml;
  return load_cluster((root.path() / "derived.toml").string(), {});
}

TEST_CASE("own host: GPUs of the driver, and the fastest active ports") {
  const TemporaryFolder root;
  for (const char* gpu : {"0000:19:00.0", "0000:1a:00.0"})
    write(root, std::string("proc/driver/nvidia/gpus/") + gpu + "/information",
          "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 17");
  for (const char* nic : {"mlx5_0", "mlx5_1"}) {
    const std::string port = std::string("sys/class/infiniband/") + nic + "/ports/1/";
    write(root, port + "rate", "400 Gb/sec (4X NDR)");
    write(root, port + "state", "4: ACTIVE");
    write(root, port + "link_layer", "InfiniBand");
  }
  write(root, "sys/class/infiniband/mlx5_2/ports/1/rate", "800 Gb/sec (4X XDR)");
  write(root, "sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN");
  write(root, "sys/class/net/eth0/speed", "1000000");
  const DerivedCluster derived = derived_cluster(own_host(root.path()), 2);
  const Cluster cluster = loaded(root, derived);
  CHECK(cluster.device == "h100");
  CHECK(cluster.device_stands_for.empty());
  CHECK(cluster.gpus_per_node == 2);
  CHECK(cluster.gpu_peers == GpuPeers::nvlink);
  CHECK(cluster.nics == 2);
  CHECK(cluster.network == NetworkKind::rdma);
  CHECK(cluster.nic_nominal.value.value() == Approx(50e9));
  CHECK_THAT(derived.sentence, Contains("2 x NVIDIA H100 80GB HBM3 (h100), 2 processes a node") &&
                                   Contains("2 x mlx5_0 at 400 Gbit/s"));
}

TEST_CASE("own host: without GPUs, the network card rather than a bridge") {
  const TemporaryFolder root;
  write(root, "sys/class/net/docker0/speed", "100000");
  write(root, "sys/class/net/docker0/bridge/id", "x");
  write(root, "sys/class/net/veth1/speed", "40000");
  write(root, "sys/class/net/eth0/speed", "25000");
  write(root, "sys/class/net/eth0/device/vendor", "0x15b3");
  write(root, "sys/class/net/eth1/speed", "-1");
  write(root, "sys/class/net/eth1/device/vendor", "0x15b3");
  const DerivedCluster derived = derived_cluster(own_host(root.path()), 4);
  const Cluster cluster = loaded(root, derived);
  CHECK(cluster.gpus_per_node == 4);
  CHECK(cluster.gpu_peers == GpuPeers::pcie);
  CHECK(cluster.network == NetworkKind::socket);
  CHECK(cluster.nic_nominal.value.value() == Approx(25e9 / 8));
  CHECK(cluster.device_stands_for == "the processor of a host without GPUs");
  CHECK_THAT(derived.sentence, Contains("no GPU, 4 processes a node, 1 x eth0 at 25 Gbit/s"));
}

TEST_CASE("own host: without a readable speed, the rate that NCCL assumes") {
  const TemporaryFolder root;
  const DerivedCluster derived = derived_cluster(own_host(root.path()), 1);
  CHECK(loaded(root, derived).nic_nominal.value.value() == Approx(10e9 / 8));
  CHECK_THAT(derived.sentence, Contains("a NIC at 10 Gbit/s (no speed is readable"));
}

TEST_CASE("own host: a GPU without a preset is named") {
  const TemporaryFolder root;
  write(root, "proc/driver/nvidia/gpus/0/information", "Model: \t\t NVIDIA T1000");
  const DerivedCluster derived = derived_cluster(own_host(root.path()), 1);
  CHECK(loaded(root, derived).device_stands_for == "NVIDIA T1000");
  CHECK_THAT(derived.sentence, Contains("for which a100-80g stands in"));
}

}  // namespace
}  // namespace lambcast
