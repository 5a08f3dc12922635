// Continuity: changing any real number of a description by 0.01 % changes no collective's time by
// more than 1 %, unless NCCL's rule switches to an algorithm that the forecast names as its rival.

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

struct RealKey {
  std::string key, value;  // key and value for --set, 0.01 % above the description's own value
};

constexpr double nudge = 1.0001;

class RealKeys {
 public:
  void add(const std::string& key, const Sourced<Bandwidth>& rate) {
    push(key, rate.value.value() * 8, " bit/s");
  }
  void add(const std::string& key, const Sourced<Duration>& time) {
    push(key, time.value.us(), " us");
  }
  void add(const std::string& key, const Sourced<double>& share) { push(key, share.value, ""); }
  void add(const std::string& key, const Sourced<Bytes>& size) {
    push(key, size.value.value(), " B");
  }
  template <typename T>
  void add(const std::string& key, const std::optional<T>& number) {
    if (number) add(key, *number);
  }

  std::vector<RealKey> all;

 private:
  void push(const std::string& key, double number, const char* unit) {
    if (number > 0 && std::isfinite(number))
      all.push_back({key, fmt::format("{:.17g}{}", number * nudge, unit)});
  }
};

void add_library(RealKeys& keys, const std::string& name, const LibrarySpec& library) {
  const auto of = [&](const char* key) { return name + "." + key; };
  keys.add(of("nic_efficiency"), library.nic_efficiency);
  if (library.rules == DecisionRules::nccl)
    keys.add(of("link_efficiency"), library.link_efficiency);
  if (library.single_gpu_efficiency.value < 1)
    keys.add(of("single_gpu_efficiency"), library.single_gpu_efficiency);
  if (library.tree_efficiency.value < 1) keys.add(of("tree_efficiency"), library.tree_efficiency);
  keys.add(of("all_to_all_efficiency"), library.all_to_all_efficiency);
  keys.add(of("slice"), library.slice);
  keys.add(of("message_overhead"), library.message_overhead);
  keys.add(of("flow_cap"), library.flow_cap);
  keys.add(of("reported_latency"), library.reported_latency);
  for (const ProtocolSpec& protocol : library.protocols) {
    const auto in = [&](const char* key) { return name + "." + protocol.name + "." + key; };
    keys.add(in("base"), protocol.base);
    keys.add(in("local_hop"), protocol.local_hop);
    keys.add(in("network_hop"), protocol.network_hop);
    if (protocol.efficiency.value < 1) keys.add(in("efficiency"), protocol.efficiency);
    keys.add(in("alone_base"), protocol.alone_base);
    keys.add(in("alone_local_hop"), protocol.alone_local_hop);
    keys.add(in("node_cap"), protocol.node_cap);
    keys.add(in("channel_rate"), protocol.channel_rate);
  }
  if (!library.nvls) return;
  keys.add(of("nvls.base"), library.nvls->base);
  keys.add(of("nvls.network_hop"), library.nvls->network_hop);
  keys.add(of("nvls.efficiency"), library.nvls->efficiency);
  keys.add(of("nvls.chunk"), library.nvls->chunk);
}

std::vector<RealKey> real_keys(const Cluster& cluster) {
  RealKeys keys;
  keys.add("nic.bandwidth", cluster.nic_bandwidth);
  keys.add("nic.nominal", cluster.nic_nominal);
  keys.add("nic.burst", cluster.nic_burst);
  keys.add("node.gpu_link", cluster.gpu_link);
  if (cluster.gpu_peers != GpuPeers::pcie) keys.add("node.gpu_nic", cluster.gpu_nic);
  keys.add("node.host_link", cluster.host_link);
  if (cluster.fabric.kind == FabricKind::fat_tree || cluster.fabric.kind == FabricKind::dragonfly)
    keys.add("fabric.oversubscription", cluster.fabric.oversubscription);
  add_library(keys, "nccl", cluster.nccl);
  add_library(keys, "mpi", cluster.mpi);
  return keys.all;
}

struct Answer {
  Duration time, low, high;
  std::string algorithm, rival;
};

Answer answer(const Cluster& cluster, Backend backend, Op op, int nodes, Bytes size) {
  const int gpus = cluster.gpus_per_node;
  const CollectiveSetting setting{op, {nodes * gpus, gpus}, backend, "", ""};
  CollectiveSeries series = prepare(cluster, setting);
  const Collective collective = forecast(series, size);
  const Tip tip = tip_of(series.request, series.machines, series.transport, collective.time);
  const CalibratedInterval interval =
      interval_of(cluster, backend, op, size, setting.group, collective.time,
                  {collective.chosen, collective.protocol, tip.rival});
  return {collective.time, interval.low, interval.high, collective.chosen,
          tip.rival ? tip.rival->algorithm : ""};
}

bool near(Duration a, Duration b) { return std::abs(a / b - 1) <= 0.01; }

void check_cluster(const std::string& name, const std::vector<Op>& ops,
                   const std::vector<int>& node_counts, const std::vector<double>& sizes) {
  const Cluster shipped = load_cluster(name, {});
  for (const auto& [key, value] : real_keys(shipped)) {
    const Cluster moved = load_cluster(name, {{key, value}});
    const Backend backend = key.starts_with("mpi.") ? Backend::mpi_host : Backend::nccl;
    for (const Op op : ops)
      for (const int nodes : node_counts)
        for (const double size : sizes) {
          if (nodes > shipped.max_nodes || nodes * shipped.gpus_per_node < 2) continue;
          const Answer before = answer(shipped, backend, op, nodes, Bytes(size));
          const Answer after = answer(moved, backend, op, nodes, Bytes(size));
          if (after.algorithm != before.algorithm && after.algorithm == before.rival) continue;
          INFO(name << " " << key << "=" << value << " " << name_of(op) << " of " << size << " B, "
                    << nodes << " nodes: " << before.algorithm << " -> " << after.algorithm << ", "
                    << before.low.us() << " " << before.time.us() << " " << before.high.us()
                    << " -> " << after.low.us() << " " << after.time.us() << " "
                    << after.high.us());
          CHECK(near(after.time, before.time));
          CHECK(near(after.low, before.low));
          CHECK(near(after.high, before.high));
          if (nodes == 1 && key.starts_with("nic.")) CHECK(after.time == before.time);
          if (key == "nic.bandwidth") CHECK(after.time <= before.time.scaled(1 + 1e-9));
        }
  }
}

TEST_CASE("continuity: a number that changes by 0.01 % changes no collective by more than 1 %") {
  // All presets whose measured algorithms differ from NCCL's choice, and one preset of each other
  // kind.
  for (const char* name : {"gcp-a3-mega", "aws-g4dn", "commodity-10gbe", "alps-gh200-tcp"})
    check_cluster(name, {Op::all_reduce}, {1, 4}, {65536, 64 << 20});
}

TEST_CASE("continuity: the same for every preset, operation and size", "[.long]") {
  for (const std::string& name : cluster_names())
    check_cluster(name, {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all},
                  {1, 2, 4, 32}, {1024, 65536, 1 << 20, 16 << 20, 256 << 20, 1 << 30});
}

TEST_CASE("continuity: a small change of a NIC keeps a measured ring") {
  const auto time = [](const char* cluster, const Overrides& overrides, int gpus, double size) {
    const Cluster asked = load_cluster(cluster, overrides);
    const CollectiveSetting setting{
        Op::all_reduce, {gpus, std::min(gpus, asked.gpus_per_node)}, Backend::nccl, "", ""};
    CollectiveSeries series = prepare(asked, setting);
    const Collective collective = forecast(series, Bytes(size));
    CHECK(collective.algorithm == "ring");
    return collective.time;
  };
  const double size = 64 << 20;
  CHECK(time("gcp-a3-mega", {{"nic.bandwidth", "200.0001Gbit/s"}}, 2, size) ==
        time("gcp-a3-mega", {}, 2, size));
  const Duration own = time("aws-g4dn", {}, 256, 640 << 20);
  for (const char* rate : {"49.9Gbit/s", "50.1Gbit/s"})
    CHECK(near(time("aws-g4dn", {{"nic.bandwidth", rate}}, 256, 640 << 20), own));
}

}  // namespace
}  // namespace lambcast
