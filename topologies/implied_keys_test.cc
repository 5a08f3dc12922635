#include "topologies/implied_keys.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "sim/base/error.h"
#include "topologies/cluster.h"
#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::vector<std::string> protocols_of(const Cluster& cluster) {
  std::vector<std::string> names;
  for (const ProtocolSpec& protocol : cluster.nccl.protocols) names.push_back(protocol.name);
  return names;
}

std::string refusal_of(const std::string& preset, const Overrides& overrides) {
  try {
    load_cluster(preset, overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

double seconds(const Cluster& cluster, int gpus, double bytes) {
  CollectiveSetting setting;
  setting.group = {gpus, cluster.gpus_per_node};
  return curve_of(cluster, setting).time(Bytes(bytes)).s();
}

using Names = std::vector<std::string>;

TEST_CASE("implied keys: an instance gives its NICs, unless the description states them") {
  const Cluster g5 = load_cluster("aws-ena-tcp", {{"nic.instance", "g5.12xlarge"}});
  CHECK(g5.nics == 1);
  CHECK(g5.nic_nominal.value == Bandwidth(40e9 / 8));
  CHECK(g5.nic_bandwidth.value == Bandwidth(40e9 / 8));
  CHECK(g5.nic_nominal.provenance.kind == Kind::published);
  CHECK(g5.nic_bandwidth.provenance.kind == Kind::assumed);
  CHECK(g5.nccl.connections == 16);
  CHECK(g5.departure.keys == Names{"nic.instance"});
  // An override of a key that follows takes precedence.
  const Cluster slower =
      load_cluster("aws-ena-tcp", {{"nic.instance", "g5.12xlarge"}, {"nic.bandwidth", "1 GB/s"}});
  CHECK(slower.nic_bandwidth.value == Bandwidth(1e9));
  CHECK(slower.nic_nominal.value == Bandwidth(40e9 / 8));
  // AWS lets small instances send at their nominal rate for minutes only.
  const Cluster small = load_cluster("aws-ena-tcp", {{"nic.instance", "g5.xlarge"}});
  CHECK(small.nic_nominal.value == Bandwidth(10e9 / 8));
  CHECK(small.nic_bandwidth.value == Bandwidth(2.5e9 / 8));
  // The preset states a rate that was reached.
  CHECK(load_cluster("aws-p5", {}).nic_bandwidth.value == Bandwidth(11.4e9));
  CHECK_THAT(refusal_of("aws-p5", {{"nic.instance", "p5.48xlarg"}}), Contains("p5.48xlarge"));
}

TEST_CASE("implied keys: a description needs no NICs next to its instance") {
  const std::string text = R"(name = "mine"
device = "h100"
[node]
gpus = 8
gpu_peers = "nvlink"
gpu_link = "367 GB/s"
gpu_nic = "54 GB/s"
[nic]
instance = "p5en.48xlarge"
network = "rdma"
[nccl]
plugin = "aws-ofi-nccl"
)";
  const Cluster mine = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(mine.nics == 16);
  CHECK(mine.nic_nominal.value == Bandwidth(200e9 / 8));
  CHECK(mine.nccl.reported_latency.value == Duration::microseconds(35));
  CHECK(protocols_of(mine) == Names{"LL", "LL128", "Simple"});
}

// The table of instances agrees with what presets state.
TEST_CASE("implied keys: presets of instances have their number and rate of NICs") {
  for (const std::string& name : cluster_names()) {
    const Table text = Table::parse(cluster_text(name), name);
    if (!text.table("nic").has("instance")) continue;
    INFO(name);
    const Cluster preset = load_cluster(name, {});
    const auto instance = text.table("nic").get<std::string>("instance");
    Table bare = Table::parse("[nic]\ninstance = \"" + instance + "\"\n", "bare.toml");
    add_implied_keys(bare);
    CHECK(bare.table("nic").integer("count", 1, 256) == preset.nics);
    CHECK(bare.table("nic").get<Sourced<Bandwidth>>("nominal").value == preset.nic_nominal.value);
  }
}

// src/transport/net_socket.cc: threads x sockets per channel.
TEST_CASE("implied keys: the platform of a NIC sets the number of NCCL's sockets") {
  const auto connections = [](const Overrides& overrides) {
    return load_cluster("commodity-100gbe", overrides).nccl.connections;
  };
  CHECK(connections({}) == 1);
  CHECK(connections({{"nic.platform", "aws"}}) == 16);
  CHECK(connections({{"nic.platform", "gcp"}}) == 4);
  CHECK(connections({{"nic.platform", "aws"}, {"nccl.connections", "2"}}) == 2);
  CHECK(load_cluster("aws-ena-tcp", {}).nccl.connections == 16);
}

TEST_CASE("implied keys: a network plugin and its release set protocols, algorithms, latency") {
  const auto of = [](const char* preset, const Overrides& overrides) {
    return load_cluster(preset, overrides).nccl;
  };
  const auto names = [](const char* preset, const char* release) {
    return protocols_of(load_cluster(preset, {{"nccl.plugin_release", release}}));
  };
  CHECK(of("aws-p3dn", {}).reported_latency.value == Duration::microseconds(150));
  CHECK(of("aws-p5", {}).reported_latency.value == Duration::microseconds(75));
  CHECK(of("aws-p5", {{"nic.instance", "p5en.48xlarge"}}).reported_latency.value ==
        Duration::microseconds(35));
  CHECK(protocols_of(load_cluster("aws-p5", {})) == Names{"LL", "Simple"});
  CHECK(names("aws-p5", "1.15") == Names{"LL", "Simple"});
  CHECK(names("aws-p5", "1.16") == Names{"LL", "LL128", "Simple"});
  CHECK(names("aws-p3dn", "1.16") == Names{"LL", "Simple"});
  CHECK(protocols_of(load_cluster("perlmutter-a100", {})) == Names{"LL", "Simple"});
  CHECK(names("gcp-a3-mega", "1.0.7") == Names{"Simple"});
  CHECK(names("gcp-a3-mega", "1.0.9") == Names{"LL128", "Simple"});
  CHECK(of("gcp-a3-mega", {{"nccl.plugin_release", "1.0.9"}}).algorithms == Names{"ring", "tree"});
  CHECK(of("gcp-a3-mega", {{"nccl.plugin_release", "1.0.12"}}).algorithms.empty());
  const LibrarySpec tcpx = of("gcp-a3-mega", {{"nccl.plugin", "tcpx"}});
  CHECK(tcpx.algorithms == Names{"ring"});
  // A protocol that is overridden too keeps its own value.
  CHECK(protocols_of(load_cluster("gcp-a3-mega", {{"nccl.plugin_release", "1.0.7"},
                                                  {"nccl.protocols", "[\"LL128\"]"}})) ==
        Names{"LL128"});
  CHECK_THAT(refusal_of("h20-roce", {{"nccl.plugin_release", "1.7"}}),
             Contains("is the release of nccl.plugin, which is not set"));
  CHECK_THAT(refusal_of("aws-p5", {{"nccl.plugin", "ofi"}}), Contains("aws-ofi-nccl"));
}

// all_gather of 16 H100 on two nodes took 86 us up to 16 KiB (public nccl-tests table of TCPXO).
// Releases with Simple alone have a higher floor.
TEST_CASE("implied keys: the floor of an all_gather depends on the release of the plugin") {
  const auto microseconds = [](const char* release) {
    CollectiveSetting setting;
    setting.op = Op::all_gather;
    setting.group = {16, 8};
    const Cluster cluster = load_cluster("gcp-a3-mega", {{"nccl.plugin_release", release}});
    return curve_of(cluster, setting).time(Bytes(4096)).us();
  };
  CHECK(microseconds("1.0.9") == Approx(86).epsilon(0.05));
  CHECK(microseconds("1.0.7") == Approx(137).epsilon(0.05));
}

TEST_CASE("implied keys: a stated plugin or instance that is set again changes nothing") {
  CHECK(load_cluster("aws-p5", {{"nccl.plugin", "aws-ofi-nccl"},
                                {"nccl.plugin_release", "1.7"},
                                {"nic.instance", "p5.48xlarge"}}) == load_cluster("aws-p5", {}));
  CHECK(load_cluster("gcp-a4", {{"nccl.plugin", "gib"}}) == load_cluster("gcp-a4", {}));
}

// NCCL over Slingshot without the plugin ran over TCP (tables of alps-gh200 and alps-gh200-tcp):
// an all_reduce of 128 MiB over 8 GPUs took 23 times as long.
TEST_CASE("implied keys: without its plugin NCCL falls back to sockets") {
  const Cluster with = load_cluster("alps-gh200", {});
  const Cluster without = load_cluster("alps-gh200", {{"nccl.plugin", "none"}});
  CHECK(without.network == NetworkKind::socket);
  CHECK(without.departure.between_nodes > 1e9);
  const double size = 134217728, slower = seconds(without, 8, size) / seconds(with, 8, size);
  CHECK(slower > 10);
  CHECK(slower < 40);
  const double same =
      seconds(without, 8, size) / seconds(load_cluster("alps-gh200-tcp", {}), 8, size);
  CHECK(std::abs(std::log(same)) < std::log(2));
  // gIB runs over NICs that NCCL's own verbs reach too.
  CHECK(load_cluster("gcp-a4", {{"nccl.plugin", "none"}}).network == NetworkKind::rdma);
}

}  // namespace
}  // namespace lambcast
