#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/base/error.h"
#include "topologies/collective_forecast.h"
#include "topologies/fabric.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("clusters: every preset loads, and every number in it has a source") {
  const std::vector<std::string> names = cluster_names();
  // Preset names that are promised to users; more may ship.
  for (const char* promised :
       {"paper-eth40-v100", "paper-edr100-v100", "blog-eth40-v100", "blog-qdr40-v100", "dgx1-v100",
        "dgx2h-v100", "dgx-a100-80g", "perlmutter-a100", "selene-a100", "hgx-h100-ndr", "aws-p3dn",
        "aws-p4d", "aws-p5", "azure-ndv2", "commodity-10gbe", "commodity-25gbe", "commodity-100gbe",
        "h200-ndr"})
    CHECK(std::count(names.begin(), names.end(), promised) == 1);
  for (const std::string& name : cluster_names()) {
    INFO(name);
    const Cluster cluster = load_cluster(name, {});
    CHECK(cluster.name == name);
    CHECK_FALSE(cluster.description.empty());
    for (const Provenance& from :
         {cluster.gpu_link.provenance, cluster.nic_nominal.provenance,
          cluster.nic_bandwidth.provenance, cluster.nccl.nic_efficiency.provenance})
      CHECK_FALSE(from.source.empty());
    // No description claims more than the nominal rate of a NIC.
    CHECK(cluster.nic_bandwidth.value <= cluster.nic_nominal.value);
  }
}

TEST_CASE("clusters: --set reaches any key and names itself as the source") {
  const Cluster cluster =
      load_cluster("paper-eth40-v100", {{"nic.bandwidth", "10Gbit/s"}, {"node.gpus", "8"}});
  CHECK(cluster.nic_bandwidth.value.value() == 1.25e9);
  CHECK(cluster.nic_bandwidth.provenance.source == "--set cluster.nic.bandwidth");
  CHECK(cluster.gpus_per_node == 8);
  CHECK_THROWS_WITH(load_cluster("paper-eth40-v100", {{"nic.bandwith", "10Gbit/s"}}),
                    Contains("unknown key 'bandwith', did you mean 'bandwidth'?"));
  CHECK_THROWS_WITH(load_cluster("paper-eth40-v100", {{"nic.bandwidth", "10"}}),
                    Contains("--set cluster.nic.bandwidth") && Contains("has no unit"));
  CHECK_THROWS_WITH(load_cluster("paper-eth40-v100", {{"node.gpus", "0"}}),
                    Contains("allowed: 1 to 1024"));
  CHECK_THROWS_WITH(load_cluster("paper-eth40", {}),
                    Contains("unknown cluster 'paper-eth40', did you mean"));
  CHECK_THROWS_WITH(load_cluster("no/such.toml", {}), Contains("no/such.toml: cannot be read"));
}

TEST_CASE("clusters: implausible values are refused with their place and the allowed range") {
  struct Row {
    const char *key, *value, *allowed;
  };
  const Row rows[] = {
      {"node.gpu_link", "99999 TB/s", "99999 TB/s is out of range (allowed: 1 kB/s to 100 TB/s)"},
      {"node.host_link", "1 B/s", "1 B/s is out of range"},
      {"nic.nominal", "1e300 GB/s", "is out of range"},
      {"nic.burst", "1e30 B", "is out of range"},
      {"host_copy.pageable_to_host", "99999 TB/s", "99999 TB/s is out of range"},
      {"nccl.flow_cap", "1e300 GB/s", "is out of range"},
      {"nccl.slice", "0 B", "0 B is out of range (allowed: 1 B to 1 TB)"},
      {"nccl.Simple.network_hop", "3 h", "is out of range (allowed: 0 s to 10 s)"},
      {"nccl.Simple.efficiency", "1.5", "1.5 is out of range (allowed: 0.0001 to 1)"},
      {"stack.compute_scale", "1e-300", "1e-300 is out of range (allowed: 0.01 to 100)"},
      {"stack.optimizer_scale", "1e300", "is out of range (allowed: 0.01 to 100)"},
      {"usd_per_gpu_hour", "1e308", "1e+308 is out of range (allowed: 0 to 10000)"},
      {"usd_per_gpu_hour", "-5", "-5 is out of range (allowed: 0 to 10000)"},
  };
  for (const Row& row : rows) {
    INFO(row.key << " = " << row.value);
    CHECK_THROWS_WITH(load_cluster("commodity-10gbe", {{row.key, row.value}}),
                      Catch::StartsWith(std::string("--set cluster.") + row.key + ": " + row.key) &&
                          Contains(row.allowed));
  }
  // In a file, the error names the line.
  std::string text = cluster_text("commodity-10gbe");
  const auto at = text.find("\"9.4 Gbit/s\"");
  REQUIRE(at != std::string::npos);
  text.replace(at, 12, "\"11 Gbit/s\"");
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  CHECK_THROWS_WITH(decode_cluster(Table::parse(text, "mine.toml"), "mine.toml"),
                    Catch::Equals("mine.toml:" + std::to_string(line + 1) +
                                  ": nic.bandwidth: 11 Gbit/s pass through a NIC of 10 Gbit/s "
                                  "(allowed: up to nic.nominal)"));
}

TEST_CASE(
    "clusters: a NIC of another rate sets its nominal rate, unless a contradicting one is given") {
  const Cluster faster = load_cluster("commodity-10gbe", {{"nic.bandwidth", "100 Gbit/s"}});
  CHECK(faster.nic_bandwidth.value.value() == 12.5e9);
  CHECK(faster.nic_nominal.value.value() == 12.5e9);
  const Cluster slower = load_cluster("commodity-10gbe", {{"nic.bandwidth", "1 Gbit/s"}});
  CHECK(slower.nic_nominal.value.value() == 1.25e9);
  CHECK_THROWS_WITH(load_cluster("commodity-10gbe",
                                 {{"nic.bandwidth", "100 Gbit/s"}, {"nic.nominal", "40 Gbit/s"}}),
                    Contains("100 Gbit/s pass through a NIC of 40 Gbit/s"));
  CHECK_THROWS_WITH(load_cluster("commodity-10gbe", {{"nic.bandwith", "100 Gbit/s"}}),
                    Contains("did you mean 'bandwidth'"));
}

TEST_CASE(
    "clusters: an unknown algorithm of a library is refused at its key with the allowed names") {
  const auto forced = [](const char* key, const char* value) {
    return load_cluster("hgx-h100-ndr", {{key, value}});
  };
  CHECK(forced("nccl.all_reduce", "tree").nccl.all_reduce == "tree");
  for (const std::string key : {"nccl.all_reduce", "mpi.all_reduce"}) {
    const std::string refused = "--set cluster." + key + ": " + key + ": unknown algorithm of an ";
    CHECK_THROWS_WITH(
        forced(key.c_str(), "rign"),
        Catch::Equals(refused +
                      "all_reduce 'rign', did you mean 'ring'? (allowed: ring, tree, nvls, "
                      "nvls_tree, collnet_direct, collnet_chain, hierarchical, "
                      "recursive_doubling, halving_doubling)"));
    // An algorithm of another operation cannot be forced for all_reduce.
    CHECK_THROWS_WITH(forced(key.c_str(), "pairwise"), Catch::StartsWith(refused));
    CHECK_THROWS_WITH(forced(key.c_str(), "\"\""), Catch::StartsWith(refused));
    CHECK_THROWS_WITH(forced(key.c_str(), R"({value = "foo", kind = "assumed", source = "test"})"),
                      Catch::StartsWith(refused) && Contains("'foo'"));
  }
  for (const auto& [key, value] : {std::pair{"nccl.algorithms", "rign"},
                                   {"nccl.protocols", "LL256"},
                                   {"nccl.algorithms", "[\"ring\", \"foo\"]"},
                                   {"mpi.library", "openmpi-4.2"}})
    CHECK_THROWS_WITH(forced(key, value),
                      Catch::StartsWith(std::string("--set cluster.") + key + ": " + key) &&
                          Contains("unknown ") && Contains("(allowed: "));
}

TEST_CASE(
    "clusters: an error about a --set that needs another key names the flag, not a line of the "
    "preset") {
  CHECK_THROWS_WITH(load_cluster("commodity-10gbe", {{"fabric.kind", "fat-tree"}}),
                    Catch::Equals("--set cluster.fabric.kind: fabric.nodes_per_leaf: is missing"));
  CHECK_THROWS_WITH(
      load_cluster("hgx-h100-ndr", {{"nic.network", "socket"}}),
      Catch::StartsWith("--set cluster.nic.network: nccl.LL128: NCCL has LL128 over"));
  CHECK_THROWS_WITH(load_cluster("commodity-10gbe", {{"nic.nominal", "1 Gbit/s"}}),
                    Catch::StartsWith("--set cluster.nic.nominal: nic.bandwidth: 9.4 Gbit/s pass"));
}

TEST_CASE("cluster: the measured layouts are calibrated") {
  const Cluster h100 = load_cluster("hgx-h100-ndr", {});
  const auto calibrated = [&](int ranks, int gpus_per_node) {
    return interval_of(h100, Backend::nccl, Op::all_reduce, Bytes(1 << 26), {ranks, gpus_per_node},
                       Duration::microseconds(100))
               .ground == Ground::same_hardware;
  };
  for (const int ranks : {8, 16, 24, 32}) CHECK(calibrated(ranks, 8));
  CHECK_FALSE(calibrated(64, 8));
  CHECK_FALSE(calibrated(8, 2));
  CHECK_FALSE(calibrated(16, 4));
  CHECK_FALSE(calibrated(12, 8));
  CHECK(describe(*h100.calibration) ==
        "all_reduce; 8 B to 17.18 GB; 8 GPUs a node on 1 to 4 nodes");
  CHECK(describe(*load_cluster("perlmutter-a100", {}).calibration) ==
        "all_gather, all_reduce, reduce_scatter; 32.77 kB to 8.59 GB; 1 GPU a node on 2 to 8 "
        "nodes, 2 on 1 to 8, 4 on 1 to 8");
}

TEST_CASE("cluster: a NIC rate is effective if it was reached") {
  CHECK(nic_rate_of(load_cluster("paper-eth40-v100", {})) == NicRate::effective);
  CHECK(nic_rate_of(load_cluster("perlmutter-a100", {})) ==
        NicRate::nominal);                                               // 25 GB/s of 200 Gbit/s
  CHECK(nic_rate_of(load_cluster("h200-ndr", {})) == NicRate::nominal);  // another machine's rate
  CHECK(nic_rate_of(load_cluster("paper-eth40-v100", {{"nic.bandwidth", "4 Gbit/s"}})) ==
        NicRate::nominal);  // an override is no evidence
  const Cluster measured = load_cluster(
      "commodity-25gbe",
      {{"nic.bandwidth", R"({ value = "25 Gbit/s", kind = "measured", source = "iperf3" })"}});
  CHECK(nic_rate_of(measured) == NicRate::effective);
  CHECK(measured.nccl.nic_efficiency.value >
        load_cluster("commodity-25gbe", {}).nccl.nic_efficiency.value);
}

TEST_CASE("clusters: no NIC is slower for being set to a higher rate, on any preset") {
  for (const std::string& name : cluster_names()) {
    const Cluster shipped = load_cluster(name, {});
    const double own = shipped.nic_bandwidth.value.value() * 8;
    double before = 0;
    for (const double factor : {0.5, 0.99, 1.0, 1.001, 1.05, 1.5, 4.0}) {
      INFO(name << " x " << factor);
      const Cluster asked =
          load_cluster(name, {{"nic.bandwidth", fmt::format("{} bit/s", own * factor)}});
      const double reached = reached_nic_rate(asked, asked.nccl, {16, 1}).value();
      CHECK(reached > before * (1 - 1e-9));
      before = reached;
      if (factor == 1.0) CHECK(reached == reached_nic_rate(shipped, shipped.nccl, {16, 1}).value());
    }
  }
}

TEST_CASE("cluster: a calibration applies until an override changes a measured property") {
  const auto standing = [](const char* name, const Overrides& overrides) {
    const Cluster cluster = load_cluster(name, overrides);
    REQUIRE(cluster.calibration);
    const bool calibrated = is_calibrated(cluster, cluster.calibration->backend, 2);
    CHECK(calibrated == cluster.departure.keys.empty());
    return calibrated;
  };
  const Bytes size(1 << 20);
  const Duration t = Duration::microseconds(100);
  const ProcessGroup group{16, 4};
  for (const auto& [key, value] : Overrides{{"nic.bandwidth", "10Gbit/s"},
                                            {"node.gpus", "8"},
                                            {"nic.count", "1"},
                                            {"nic.burst", "1 MB"},
                                            {"node.gpu_link", "100 GB/s"},
                                            {"node.gpu_nic", "10 GB/s"},
                                            {"fabric", "{ kind = 'torus', dimensions = [8] }"},
                                            {"nccl.Simple.base", "1ms"},
                                            {"nccl.nic_efficiency", "0.5"},
                                            {"nccl", "{ nic_efficiency = 0.5 }"}}) {
    INFO(key);
    CHECK_FALSE(standing("perlmutter-a100", {{key, value}}));
    const Cluster changed = load_cluster("perlmutter-a100", {{"name", "other"}, {key, value}});
    CHECK(changed.departure.keys == std::vector{key});
    CHECK(without_calibration(changed) == "not calibrated (--set changed " + key + ")");
    const auto interval = [&](const Cluster& cluster) {
      return interval_of(cluster, Backend::nccl, Op::all_reduce, size, group, t);
    };
    CHECK_FALSE(interval(changed).calibrated);
    CHECK(interval(changed).high > interval(load_cluster("perlmutter-a100", {})).high);
    CHECK(interval(changed).high <= interval(load_cluster("paper-edr100-v100", {})).high);
  }
  // Repeating a value of the description is no change: calibration and evidence stay.
  for (const auto& [key, value] : Overrides{{"node.gpus", "4"},
                                            {"nic.network", "rdma"},
                                            {"nic.count", "4"},
                                            {"nic.bandwidth", "25GB/s"},
                                            {"nic.bandwidth", "200 Gbit/s"}}) {
    INFO(key << " " << value);
    CHECK(load_cluster("perlmutter-a100", {{key, value}}) == load_cluster("perlmutter-a100", {}));
  }
  CHECK_FALSE(standing("perlmutter-a100", {{"nic.bandwidth", "25.1 GB/s"}}));
  CHECK_FALSE(standing("perlmutter-a100", {{"nccl.protocols", "LL"}}));  // one of two
  // These keys do not affect communication over NCCL.
  CHECK(standing("perlmutter-a100", {{"name", "mine"},
                                     {"description", "mine"},
                                     {"device", "h100"},
                                     {"usd_per_gpu_hour", "3.0"},
                                     {"max_nodes", "16"},
                                     {"nic.nominal", "400 Gbit/s"},
                                     {"stack.compute_scale", "2"},
                                     {"mpi.nic_efficiency", "0.5"},
                                     {"node.host_memory", "9 GB/s"},
                                     {"node.host_capacity", "9 GB"},
                                     {"node.host_link", "9 GB/s"},
                                     {"host_copy.pageable_to_host", "3 GB/s"}}));
  CHECK(load_cluster("perlmutter-a100", {{"calibration.source", "a better one"}})
            .calibration->source == "a better one");
  // If MPI was measured, the keys of MPI matter and those of NCCL do not.
  CHECK(standing("emulated-ethernet-100mbit", {{"nccl.nic_efficiency", "0.5"}}));
  CHECK_FALSE(standing("emulated-ethernet-100mbit", {{"mpi.nic_efficiency", "0.5"}}));
  CHECK_FALSE(standing("emulated-ethernet-100mbit", {{"node.host_link", "9 GB/s"}}));
  CHECK(without_calibration(load_cluster("paper-eth40-v100", {{"nic.count", "2"}})) ==
        "not calibrated");
}

TEST_CASE("clusters: the queue of a switch port, which TCP can overflow") {
  const auto transport = [](const Overrides& overrides) {
    const Cluster cluster = load_cluster("paper-eth40-v100", overrides);
    return transport_of(cluster, Backend::mpi_host);
  };
  CHECK_FALSE(transport({}).port_queue);
  const Transport shallow = transport({{"nic.port_queue", "64 KiB"}});
  REQUIRE(shallow.port_queue);
  CHECK(shallow.port_queue->depth.value() == 65536);
  CHECK(shallow.port_queue->rto_min.ms() == 200);
  const Overrides tuned{{"nic.port_queue", "64 KiB"}, {"nic.rto_min", "10 ms"}};
  CHECK(transport(tuned).port_queue->rto_min.ms() == 10);
  CHECK_THROWS_WITH(transport({{"nic.rto_min", "10 ms"}}), Contains("unknown key 'rto_min'"));
  CHECK_THROWS_WITH(load_cluster("hgx-h100-ndr", {{"nic.port_queue", "64 KiB"}}),
                    Contains("only TCP drops packets"));
}

TEST_CASE("clusters: each GPU adds its share of the NICs") {
  const Cluster cluster = load_cluster("perlmutter-a100", {});
  CHECK(nics_in_use(cluster, 4) == 4);
  CHECK(nics_in_use(cluster, 1) == 1);
  CHECK(nics_in_use(load_cluster("paper-eth40-v100", {}), 2) == 1);
}

TEST_CASE("clusters: GPUs joined in pairs use only the links to peers in use") {
  // A GPU reaches 195 GB/s to three peers together, so one peer gets a third of it. An all-gather
  // of two ranks is one step of S/2.
  const auto seconds = [](const char* peers, int gpus) {
    Overrides all{
        {"node.gpu_peers", peers}, {"node.gpu_link", "195 GB/s"}, {"nccl.link_efficiency", "1"}};
    for (const char* key : {"alone_base", "alone_local_hop"})
      all.emplace_back(std::string("nccl.Simple.") + key, "0 us");
    const Cluster cluster = load_cluster("perlmutter-a100", all);
    CollectiveSetting setting;
    setting.op = Op::all_gather;
    setting.group.ranks = setting.group.per_node = gpus;
    setting.protocol = "Simple";
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(130e9)).time.s();
  };
  CHECK(seconds("nvlink-mesh", 2) == Approx(1).epsilon(1e-6));
  CHECK(seconds("nvlink", 2) == Approx(1. / 3).epsilon(1e-6));
  CHECK(seconds("nvlink-mesh", 4) == Approx(0.75 * 130 / 195).epsilon(1e-6));
}

TEST_CASE("clusters: libraries with few protocols, one GPU per node, reduction in the switch") {
  const Cluster cluster = load_cluster("perlmutter-a100", {});
  REQUIRE(cluster.nccl.protocols.size() == 2);
  CHECK(cluster.nccl.protocols[0].name == "LL");
  CHECK(load_cluster("hgx-h100-ndr", {{"nccl.protocols", "Simple"}}).nccl.protocols.size() == 1);
  CHECK_THROWS_WITH(load_cluster("perlmutter-a100", {{"nccl.protocols", "[\"LL\", \"Simpel\"]"}}),
                    Contains("unknown protocol 'Simpel', did you mean 'Simple'?"));
  CHECK_THROWS_WITH(load_cluster("perlmutter-a100", {{"nccl.protocols", "[]"}}),
                    Contains("selects none of the values"));
  // A single GPU's share of its NIC slows large all-gathers by this factor.
  const auto seconds = [](const char* efficiency) {
    const Cluster one =
        load_cluster("perlmutter-a100", {{"nccl.single_gpu_efficiency", efficiency}});
    CollectiveSetting setting;
    setting.op = Op::all_gather;
    setting.group.ranks = 8;
    CollectiveSeries series = prepare(one, setting);
    return forecast(series, Bytes(1e12)).time.s();
  };
  CHECK(seconds("0.5") == Approx(2 * seconds("1.0")).epsilon(1e-3));
  const Cluster h100 = load_cluster("hgx-h100-ndr", {});
  CHECK(h100.nccl.nvls);
  CHECK_FALSE(cluster.nccl.nvls);
  CHECK(transport_of(h100, Backend::nccl).protocols.back().in_switch.has_value());
}

TEST_CASE("clusters: groups of one GPU per node have NICs of their own, or share them") {
  const auto seconds = [](int siblings, const char* nics, const char* alone) {
    const Cluster cluster =
        load_cluster("hgx-h100-ndr", {{"nic.count", nics}, {"nccl.single_gpu_efficiency", alone}});
    CollectiveSetting setting;
    setting.group = {4, 1, 8, 1, siblings};
    setting.protocol = "Simple";
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(1e12)).time.s();
  };
  CHECK(seconds(8, "8", "1") == seconds(1, "8", "1"));
  CHECK(seconds(8, "1", "1") == Approx(8 * seconds(1, "1", "1")).epsilon(1e-4));
  // The factor for a single GPU does not apply to a NIC that several groups keep busy.
  CHECK(seconds(8, "8", "0.5") == Approx(2 * seconds(8, "8", "1")).epsilon(1e-4));
  CHECK(seconds(8, "1", "0.5") == seconds(8, "1", "1"));
  const Cluster h100 = load_cluster("hgx-h100-ndr", {});
  const auto calibrated = [&](int siblings) {
    return interval_of(h100, Backend::nccl, Op::all_reduce, Bytes(1 << 26), {16, 8, 1, 1, siblings},
                       Duration::microseconds(100))
               .ground == Ground::same_hardware;
  };
  CHECK(calibrated(1));
  CHECK_FALSE(calibrated(2));
}

// Returns the time of a collective of 100 MB over all GPUs of a cluster with the given fabric.
double flow_seconds(Op op, const char* algorithm, const Overrides& overrides, int nodes) {
  Overrides all{{"nccl.Simple.base", "0 us"},
                {"nccl.Simple.local_hop", "0 us"},
                {"nccl.Simple.network_hop", "0 us"},
                {"nccl.nic_efficiency", "1"},
                {"nccl.link_efficiency", "1"}};
  all.insert(all.end(), overrides.begin(), overrides.end());
  const Cluster cluster = load_cluster("h200-ndr", all);
  Machines machines = machines_of(cluster, Backend::nccl, {8 * nodes, 8});
  const Collective collective = plan_collective(
      {op, Bytes(100e6), {8 * nodes, 8}, DecisionRules::nccl, algorithm, "Simple", false}, machines,
      transport_of(cluster, Backend::nccl));
  const double flow = simulate(collective, NetworkModel::flow).s();
  CHECK(flow <= collective.time.s() * (1 + 1e-6));
  return flow;
}

double ring_seconds(const Overrides& overrides, int nodes) {
  return flow_seconds(Op::all_reduce, "ring", overrides, nodes);
}

TEST_CASE("fabrics: rings over rails are not slowed by uplinks that they do not cross") {
  const double ideal = ring_seconds({}, 8);
  CHECK(ideal == Approx(2 * 63. / 64 * 100e6 / (8 * 49e9)).epsilon(1e-6));
  // With one leaf per rail for all nodes, no link is shared.
  CHECK(ring_seconds({{"fabric.kind", "rail-optimised"}, {"fabric.nodes_per_leaf", "8"}}, 8) ==
        Approx(ideal));
  // On each rail, a ring crosses between leaves at every second node. Uplinks of two ports,
  // oversubscribed 4:1, have 2 / 4 of a NIC's rate, so the crossing flow gets half of its rate.
  CHECK(ring_seconds({{"fabric.kind", "rail-optimised"},
                      {"fabric.nodes_per_leaf", "2"},
                      {"fabric.oversubscription", "4.0"}},
                     8) == Approx(2 * ideal));
  CHECK(ring_seconds({{"fabric.kind", "torus"}, {"fabric.dimensions", "[8]"}}, 8) == Approx(ideal));
  CHECK(ring_seconds({{"fabric.kind", "dragonfly"},
                      {"fabric.nodes_per_leaf", "1"},
                      {"fabric.routers_per_group", "4"}},
                     8) >= ideal * (1 - 1e-6));
  // Only one of the four nodes of a leaf sends to another leaf, so uplinks oversubscribed 4:1 carry
  // that flow at the NICs' rate.
  for (const char* const oversubscription : {"1.0", "4.0"}) {
    CHECK(ring_seconds({{"fabric.kind", "fat-tree"},
                        {"fabric.nodes_per_leaf", "4"},
                        {"fabric.oversubscription", oversubscription}},
                       8) == Approx(ideal));
  }
  CHECK_THROWS_WITH(ring_seconds({{"fabric.kind", "torus"}, {"fabric.dimensions", "[2, 2]"}}, 8),
                    Contains("4 places cannot hold 8 nodes"));
}

TEST_CASE("fabrics: leaves and spines at an oversubscription of 1 are non-blocking") {
  const auto exchange_seconds = [](const Overrides& overrides) {
    return flow_seconds(Op::all_to_all, "pairwise", overrides, 8);
  };
  const double ideal = exchange_seconds({});
  for (const char* const kind : {"fat-tree", "rail-optimised"}) {
    for (const char* const nodes_per_leaf : {"1", "2", "4", "8"}) {
      INFO(kind << " of " << nodes_per_leaf);
      CHECK(exchange_seconds({{"fabric.kind", kind}, {"fabric.nodes_per_leaf", nodes_per_leaf}}) ==
            Approx(ideal).epsilon(1e-6));
    }
  }
}

TEST_CASE(
    "collectives: the exchange of compressed_allreduce sends the bytes of DeepSpeed's source") {
  const Cluster cluster = load_cluster("paper-eth40-v100", {});
  for (const Backend backend : {Backend::nccl, Backend::mpi_host}) {
    for (const int ranks : {4, 8, 6}) {
      CollectiveSetting setting;
      setting.group.ranks = ranks;
      setting.group.per_node = std::min(ranks, 4);
      setting.backend = backend;
      double sent = 0;
      CollectiveSeries series = prepare(cluster, setting);
      for (const Collective& part : compressed_exchange(series, backend, Bytes(4 * 1000)))
        sent += part.traffic.sent_per_rank.value();
      // 1000 elements are padded to a multiple of n * lcm(n, 8) = 32, 64 or 144. In each of two
      // phases, every rank sends all signs except its own chunk, and its scale (4 bytes) to all.
      const double padded = ranks == 4 ? 1024 : ranks == 8 ? 1024 : 1008;
      CHECK(sent == Approx(2 * (ranks - 1.) / ranks * padded / 8 + 8 * (ranks - 1)));
    }
  }
}

}  // namespace
}  // namespace lambcast
