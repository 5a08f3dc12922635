// Mechanisms that determine the rate of collectives on machines without tables, in closed form.
#include <catch2/catch.hpp>
#include <cmath>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

double seconds(const std::string& preset, const Overrides& overrides, Op op, int gpus, double bytes,
               const char* algorithm = "", Backend backend = Backend::nccl) {
  CollectiveSetting setting;
  setting.op = op;
  setting.backend = backend;
  setting.algorithm = algorithm;
  const Cluster cluster = load_cluster(preset, overrides);
  setting.group.ranks = gpus;
  setting.group.per_node = std::min(gpus, cluster.gpus_per_node);
  CollectiveSeries series = prepare(cluster, setting);
  return forecast(series, Bytes(bytes)).time.s();
}

TEST_CASE("uncalibrated rates: every NVSwitch of Hopper and later reduces, also in a rack") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    INFO(name);
    const bool switched = cluster.gpu_peers == GpuPeers::nvlink && cluster.gpus_per_node >= 8;
    const bool modern = name.starts_with("hgx-") || name.starts_with("gb") ||
                        cluster.device == "h100" || cluster.device == "b200";
    if (switched && modern) CHECK(cluster.nccl.nvls.has_value());
  }
  // An empty table [nccl.nvls] counts as present.
  CHECK(load_cluster("meta-h100-roce", {}).nccl.nvls->efficiency.value == 0.85);
  CHECK_FALSE(load_cluster("dgx-a100-80g", {}).nccl.nvls);
}

TEST_CASE("uncalibrated rates: values copied from another preset's network equal the original") {
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

// 192 = channels x heads. Chunks have 32 KiB from 12.6 MB on, 64 KiB from 101 MB on, and 128 KiB
// from 1.6 GB on.
TEST_CASE("uncalibrated rates: an all-reduce in the switch waits for its chunks") {
  const auto time = [](double size, const char* chunk) {
    return seconds("hgx-b200-ndr", {{"nccl.nvls.chunk", chunk}}, Op::all_reduce, 8, size, "nvls");
  };
  for (const auto& [mib, chunk_kib] :
       {std::pair(8, 16), std::pair(64, 32), std::pair(1024, 64), std::pair(16384, 128)}) {
    INFO(mib << " MiB");
    const double size = mib * 0x1p20;
    CHECK(time(size, "60 ns") - time(size, "0 ns") ==
          Approx(size / (chunk_kib * 1024.0) * 60e-9).epsilon(1e-6));
  }
  // The links carry S (1 + 1/8) at 1.1039 x 0.92 x 720 GB/s = 731 GB/s, which gives 650 GB/s of S.
  CHECK(time(1e14, "0 ns") == Approx(1e14 / 650e9).epsilon(1e-3));
  // Between nodes, chunks pass while the NICs are busy. 2^30 B have 8192 chunks of 128 KiB. At 1 us
  // each they are hidden by NICs of 20 Gbit/s; at 2 us each, with NICs of 400 Gbit/s, they are the
  // slowest part.
  const auto over_nodes = [](const char* chunk, const char* nic) {
    return seconds("hgx-b200-ndr", {{"nccl.nvls.chunk", chunk}, {"nic.bandwidth", nic}},
                   Op::all_reduce, 16, 0x1p30, "nvls_tree");
  };
  CHECK(over_nodes("0 us", "20 Gbit/s") == over_nodes("1 us", "20 Gbit/s"));
  CHECK(over_nodes("3 us", "400 Gbit/s") - over_nodes("2 us", "400 Gbit/s") ==
        Approx(0x1p30 / (128 * 1024) * 1e-6).epsilon(1e-6));
}

// Rings and messages send 7/8 S over each link, at 0.92 of 720 GB/s.
TEST_CASE("uncalibrated rates: rings inside a Blackwell node reach 0.92 of its switch's rate") {
  for (const char* preset : {"hgx-b200-ndr", "hgx-b300-xdr", "gcp-a4"})
    for (const Op op : {Op::all_gather, Op::reduce_scatter, Op::all_to_all}) {
      INFO(preset);
      CHECK(seconds(preset, {}, op, 8, 1e12) == Approx(7.0 / 8 * 1e12 / 662.4e9).epsilon(1e-3));
    }
}

TEST_CASE("uncalibrated rates: on two racks half the bytes are no slower") {
  for (const char* rack : {"gb200-nvl72", "gb300-nvl72"})
    for (double size = 1 << 20; size < 1e9; size *= 2) {
      INFO(rack << " " << size);
      CHECK(seconds(rack, {}, Op::all_reduce, 144, size) <
            1.1 * seconds(rack, {}, Op::all_reduce, 144, 2 * size));
    }
}

TEST_CASE("uncalibrated rates: the factor of an all_to_all applies only between nodes") {
  const auto time = [](Op op, int gpus, const char* share) {
    return seconds("hgx-h100-ndr", {{"nccl.all_to_all_efficiency", share}}, op, gpus, 1e12);
  };
  CHECK(time(Op::all_to_all, 16, "0.5") == Approx(2 * time(Op::all_to_all, 16, "1")).epsilon(1e-3));
  CHECK(time(Op::all_to_all, 8, "0.5") == time(Op::all_to_all, 8, "1"));
  CHECK(time(Op::all_gather, 16, "0.5") == time(Op::all_gather, 16, "1"));
  CHECK(load_cluster("hgx-h100-ndr", {}).nccl.all_to_all_efficiency.value == 0.78);
  // Presets whose NIC share was fitted to an all_to_all already include the factor. Over sockets
  // there is none, since sockets fill the NIC.
  CHECK(load_cluster("h20-roce", {}).nccl.all_to_all_efficiency.value == 1);
  CHECK(load_cluster("commodity-10gbe", {}).nccl.all_to_all_efficiency.value == 1);
}

// 15 of 16 parts of 1e11 B leave a GPU, and 8 of 16 parts leave its node. Eight GPUs together send
// 8e11 B / 2 at the node's 6 GB/s, independent of the NICs.
TEST_CASE("uncalibrated rates: a node sends 6 GB/s over TCP") {
  const Overrides fast{{"node.gpus", "8"},
                       {"nic.nominal", "400 Gbit/s"},
                       {"nic.bandwidth", "400 Gbit/s"},
                       {"nccl.flow_cap", "100 GB/s"}};
  CHECK(seconds("commodity-100gbe", fast, Op::all_to_all, 16, 1e11) ==
        Approx(8 * 1e11 / 2 / 6e9).epsilon(0.01));
}

// Measured by osu_allreduce on hosts that have no table here. One process per node on 10 GbE
// reaches 0.645 GB/s, less than the NIC. The 4 or 8 processes of a node share its memory's copy
// rate.
// https://github.com/dexhunter/allreduce-experiments (b49158f), data/ompi-results;
// https://github.com/converged-computing/performance-study (6f3df68), experiments/google/gke/gpu.
TEST_CASE(
    "uncalibrated rates: MPI processes over TCP have a connection's rate each, and share one "
    "memory") {
  struct Row {
    const char* gpus_per_node;
    const char* nic;
    int ranks;
    double bytes, measured_us;
  };
  const Row rows[] = {
      {"1", "9.4 Gbit/s", 16, 64 << 20, 241024}, {"1", "9.4 Gbit/s", 16, 512 << 20, 2039330},
      {"4", "9.4 Gbit/s", 32, 64 << 20, 151393}, {"4", "9.4 Gbit/s", 32, 512 << 20, 1237060},
      {"8", "31 Gbit/s", 32, 1 << 20, 3530},     {"8", "31 Gbit/s", 64, 1 << 20, 3677},
      {"8", "31 Gbit/s", 128, 1 << 20, 4068},    {"8", "31 Gbit/s", 256, 1 << 20, 4231}};
  for (const Row& row : rows) {
    const Overrides host{
        {"node.gpus", row.gpus_per_node}, {"nic.nominal", "32 Gbit/s"}, {"nic.bandwidth", row.nic}};
    const double forecast_us = 1e6 * seconds("commodity-10gbe", host, Op::all_reduce, row.ranks,
                                             row.bytes, "", Backend::mpi_host);
    INFO(row.ranks << " ranks, " << row.bytes << " B: " << forecast_us);
    CHECK(std::abs(std::log(forecast_us / row.measured_us)) < std::log(1.5));
  }
  // S = 1e11 B: a ring sends 2 x 15/16 S through the connection of each process.
  CHECK(seconds("commodity-100gbe", {{"node.gpus", "1"}}, Op::all_reduce, 16, 1e11, "ring",
                Backend::mpi_host) == Approx(2 * 15. / 16 * 1e11 / 0.645e9).epsilon(0.01));
  CHECK(load_cluster("commodity-100gbe", {{"node.gpus", "8"}}).host_link.value ==
        Bandwidth(6.5e9 / 8));
  CHECK(load_cluster("dgx-a100-80g", {}).host_link.value == Bandwidth(5e9));
}

// With 8 ranks on two nodes a ring sends 2 x 7/8 S, a tree S at 0.55 of the rate.
TEST_CASE("uncalibrated rates: over TCP a tree of two nodes moves no more than a ring") {
  const auto time = [](const char* algorithm) {
    return seconds("commodity-10gbe", {}, Op::all_reduce, 8, 1e11, algorithm);
  };
  CHECK(time("ring") / time("tree") == Approx(1.75 * 0.55).epsilon(0.01));
}

// NCCL 2.4 has one tree, whose inner nodes pass on each byte twice each way.
TEST_CASE("uncalibrated rates: a single tree has half the rate of two") {
  const auto time = [](const char* version) {
    const Overrides asked{{"nccl.version", version}, {"nccl.tree_threshold", "1 TB"}};
    return seconds("commodity-10gbe",
                   std::string(version) == "2.4" ? asked : Overrides{{"nccl.version", version}},
                   Op::all_reduce, 64, 1e11, "tree");
  };
  CHECK(time("2.4") / time("2.18") == Approx(2).epsilon(0.01));
}

// Without slices, a ring of g GPUs per node hides the NICs' waits behind the blocks of other GPUs:
// f + sqrt((W - f)^2 + L^2), with f the 2 (N - 1) steps of W / (2 (n - 1)) over the network.
TEST_CASE("uncalibrated rates: the GPUs of a node keep its NIC busy over TCP") {
  constexpr double block = 1e6, rate = 9.4e9 / 8;
  const auto excess = [&](int per_node) {
    const int ranks = 4 * per_node;
    const Overrides overrides{{"node.gpus", std::to_string(per_node)},
                              {"nccl.protocols", "[\"Simple\"]"},
                              {"nccl.nic_efficiency", "1"},
                              {"nccl.single_gpu_efficiency", "1"},
                              {"nccl.message_overhead", "0 us"},
                              {"node.gpu_link", "100 TB/s"},
                              {"nccl.Simple.base", "0 us"},
                              {"nccl.Simple.local_hop", "0 us"},
                              {"nccl.Simple.network_hop", "500 us"}};
    const double whole = 2 * (ranks - 1) * block / rate;
    return seconds("commodity-10gbe", overrides, Op::all_reduce, ranks, ranks * block, "ring") -
           whole;
  };
  const double latency = 6 * 500e-6;
  // With one GPU per node all steps cross the network, so f = W.
  CHECK(excess(1) == Approx(latency).epsilon(0.01));
  // With eight GPUs per node, 6 of 62 blocks wait for the network.
  const double whole = 62 * block / rate, first = 6 * block / rate;
  CHECK(excess(8) == Approx(first + std::hypot(whole - first, latency) - whole).epsilon(0.01));
}

TEST_CASE("uncalibrated rates: intervals include facts that no table of the machine determines") {
  const auto half_width = [](const char* preset, Op op, int gpus) {
    const Cluster cluster = load_cluster(preset, {});
    const ProcessGroup group{gpus, std::min(gpus, cluster.gpus_per_node)};
    const Duration time = Duration::microseconds(1e6);
    const CalibratedInterval interval =
        interval_of(cluster, Backend::nccl, op, Bytes(1e9), group, time);
    return std::min(std::log(time / interval.low), std::log(interval.high / time));
  };
  CHECK(half_width("hgx-h100-ndr", Op::all_to_all, 16) >= 0.5 - 1e-6);
  CHECK(half_width("hgx-h100-ndr", Op::all_to_all, 8) < 0.5);
  CHECK(half_width("h20-roce", Op::all_to_all, 16) < 0.5);
  // The tables of this preset do not state their instance type.
  CHECK(half_width("aws-ena-tcp", Op::all_reduce, 2) >= std::log(2.5) - 1e-6);
}

// Data parallelism of tp 8 on 128 nodes: eight groups with one GPU and one NIC a node each. A ring
// of 128 GPUs sends 2 x 127/128 of 10 GB at the rate of a NIC, 24 GB/s x 0.9281 x 0.96.
TEST_CASE(
    "uncalibrated rates: sibling groups of one GPU a node each fill their own InfiniBand NIC") {
  const auto of_siblings = [](int siblings, const Overrides& overrides) {
    const Cluster cluster = load_cluster("dgx-a100-80g", overrides);
    CollectiveSetting setting;
    setting.group = {128, 1, 8, 1, siblings};
    setting.algorithm = "ring";
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(1e10)).time.s();
  };
  const double rate = 24e9 * 0.9281 * 0.96;
  CHECK(of_siblings(8, {}) == Approx(2 * 127 / 128. * 1e10 / rate).epsilon(0.02));
  CHECK(of_siblings(8, {}) == Approx(of_siblings(1, {})).epsilon(1e-6));
  // The prior of other networks (topologies/priors.toml).
  CHECK(of_siblings(8, {{"nic.link_layer", "ethernet"}}) > 1.2 * of_siblings(8, {}));
}

}  // namespace
}  // namespace lambcast
