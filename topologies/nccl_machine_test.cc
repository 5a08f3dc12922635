#include "topologies/nccl_machine.h"

#include <catch2/catch.hpp>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

double expected_us(const NcclTuning& tuning, Op op, double size, int nodes, int local) {
  return nccl_choices(tuning, op, Bytes(size), nodes, local).front().time.us();
}

std::string_view chosen(const NcclTuning& tuning, double size, int nodes, int local) {
  return nccl_choices(tuning, Op::all_reduce, Bytes(size), nodes, local).front().algorithm;
}

TEST_CASE("NCCL's own model: values worked out by hand") {
  // Perlmutter has AMD CPUs; here 8 nodes with one A100 and one NIC of 25 GB/s each (listed step
  // 24).
  const NcclTuning tuning = nccl_machine(load_cluster("perlmutter-a100", {}));
  CHECK(tuning.amd);
  // An all-gather of 32 KiB uses ring LL: 7 hops of 5 us after a base of 6.6 us, at 24/2 GB/s x
  // 8/7.
  CHECK(expected_us(tuning, Op::all_gather, 32768, 8, 1) ==
        Approx(6.6 + 7 * 5 + 32768 / (12e3 * 8 / 7)));
  // A ring of 1 GiB uses Simple: 8.4 + 7 * 14 us of latency, at 24 GB/s x 8/7.
  CHECK(expected_us(tuning, Op::all_gather, 1 << 30, 8, 1) ==
        Approx(8.4 + 7 * 14 + (1 << 30) / (24e3 * 8 / 7)));
  // An all-reduce of 1 GiB goes twice around the same ring, with 1.4 times the latency. A tree
  // would reach half of 0.92 * 24 GB/s, 11.04, less than the ring's 24 * 8/14 = 13.7.
  CHECK(expected_us(tuning, Op::all_reduce, 1 << 30, 8, 1) ==
        Approx(1.4 * (8.4 + 14 * 14) + (1 << 30) / (24e3 * 8 / 14)));
  // One node of 4 GPUs has 240 GB/s of NVLink, at most 87.7 with LL. 8 bytes use ring LL, with 6
  // hops of 0.6 us.
  CHECK(expected_us(tuning, Op::all_reduce, 8, 1, 4) == Approx(6.6 + 6 * 0.6).epsilon(1e-3));
}

TEST_CASE("NCCL's own model: a tree for latency and for two nodes, a ring for bandwidth") {
  NcclTuning tuning = nccl_machine(load_cluster("perlmutter-a100", {}));
  CHECK(chosen(tuning, 65536, 8, 4) == "tree");
  CHECK(chosen(tuning, 1 << 30, 8, 4) == "ring");
  // On two nodes each half of the data crosses the network once per direction, so a tree pays with
  // slow NICs (four of 12.5 GB/s for eight GPUs). With NICs of 25 GB/s it does not: a channel's
  // 23.6 GB/s is less than the ring's rate.
  CHECK(chosen(nccl_machine(load_cluster("aws-p4d", {})), 1 << 30, 2, 8) == "tree");
  CHECK(chosen(tuning, 1 << 30, 2, 4) == "ring");
  // Hops of 28 us make a tree slower: the ring takes over at a smaller size in 2.19 than in 2.23.
  const auto trees = [&](int minor) {
    tuning.minor = minor;
    int count = 0;
    for (double size = 1024; size < 1e9; size *= 1.1)
      count += chosen(tuning, size, 8, 4) == "tree" ? 1 : 0;
    return count;
  };
  CHECK(trees(19) < trees(23));
  // NCCL's model leaves out all_to_all.
  CHECK(nccl_choices(tuning, Op::all_to_all, Bytes(1024), 8, 4).empty());
  // A Hopper node uses its NVLink switch for large messages.
  const NcclTuning hopper = nccl_machine(load_cluster("hgx-h100-ndr", {}));
  CHECK(chosen(hopper, 1 << 30, 1, 8) == "nvls");
  CHECK(chosen(hopper, 1024, 1, 8) == "ring");
}

TEST_CASE("NCCL's choice: settings of users in its environment") {
  const auto of = [](const Overrides& keys) {
    return nccl_machine(load_cluster("hgx-h100-ndr", keys));
  };
  // Over several nodes, only the algorithms that the key names are used.
  CHECK(chosen(of({}), 1 << 30, 4, 8) == "nvls_tree");
  CHECK(chosen(of({{"nccl.algorithms", "[\"ring\"]"}}), 1 << 30, 4, 8) == "ring");
  CHECK(chosen(of({{"nccl.algorithms", "[\"ring\", \"tree\"]"}}), 65536, 4, 8) == "tree");
  CHECK(nccl_choices(of({{"nccl.algorithms", "[\"nvls\"]"}}), Op::all_reduce, Bytes(1e6), 4, 8)
            .empty());
  // An all_gather always uses the ring, which is therefore not restricted.
  CHECK(nccl_choices(of({{"nccl.algorithms", "[\"tree\"]"}}), Op::all_gather, Bytes(1e6), 4, 8)
            .front()
            .algorithm == "ring");
  // NCCL 2.4 chooses by size, regardless of cost.
  const NcclTuning old = of({{"nccl.tree_threshold", "4 MiB"}, {"nccl.version", "\"2.4\""}});
  CHECK(chosen(old, (4 << 20) - 1, 4, 8) == "tree");
  CHECK(chosen(old, 4 << 20, 4, 8) == "ring");
  CHECK_THROWS_WITH(of({{"nccl.tree_threshold", "4 MiB"}}),
                    Catch::Matchers::Contains("NCCL 2.5 and later have no tree threshold"));
  CHECK_THROWS_WITH(of({{"nccl.version", "\"2.4\""}}),
                    Catch::Matchers::Contains("needs tree_threshold"));
  CHECK_THROWS_WITH(of({{"nccl.algorithms", "[\"rings\"]"}}),
                    Catch::Matchers::Contains("did you mean 'ring'"));
  CHECK_THROWS_WITH(of({{"nccl.min_ctas", "8"}, {"nccl.max_ctas", "4"}}),
                    Catch::Matchers::Contains("8 is above max_ctas, 4"));
}

// Keys accept the syntax of NCCL_ALGO and NCCL_PROTO.
TEST_CASE("NCCL's algorithms and protocols are named in any case, or left out after a ^") {
  const auto of = [](const char* key, const char* value) {
    return load_cluster("hgx-h100-ndr", {{key, value}}).nccl;
  };
  using Names = std::vector<std::string>;
  CHECK(of("nccl.algorithms", "[\"Ring\", \"NVLSTree\"]").algorithms == Names{"ring", "nvls_tree"});
  CHECK(of("nccl.algorithms", "^NVLS").algorithms ==
        Names{"ring", "tree", "nvls_tree", "collnet_direct", "collnet_chain"});
  CHECK(of("nccl.algorithms", "[\"^nvls\", \"nvls_tree\"]").algorithms ==
        Names{"ring", "tree", "collnet_direct", "collnet_chain"});
  CHECK(of("nccl.algorithms", "CollNetDirect").algorithms == Names{"collnet_direct"});
  CHECK(of("nccl.algorithms", "[\"^CollNetDirect\", \"PAT\"]").algorithms.size() == 5);
  // One comma-separated string, as in NCCL_ALGO. NCCL 2.24 and later also accept a list per
  // collective.
  CHECK(of("nccl.algorithms", "RING,TREE").algorithms == Names{"ring", "tree"});
  CHECK(of("nccl.algorithms", "[\"RING,TREE\"]").algorithms == Names{"ring", "tree"});
  CHECK(of("nccl.algorithms", "^TREE,NVLSTree").algorithms ==
        Names{"ring", "nvls", "collnet_direct", "collnet_chain"});
  CHECK(of("nccl.algorithms", "ring,collnetdirect;allreduce:tree,collnetdirect;broadcast:ring")
            .algorithms == Names{"tree", "collnet_direct"});
  CHECK(of("nccl.algorithms", "ring;allgather:tree").algorithms == Names{"ring"});
  CHECK(of("nccl.algorithms", "AllReduce:^Tree").algorithms.size() == 5);
  CHECK(of("nccl.algorithms", "allgather:ring").algorithms.size() == 6);
  const auto protocols = [&](const char* value) {
    Names names;
    for (const ProtocolSpec& protocol : of("nccl.protocols", value).protocols)
      names.push_back(protocol.name);
    return names;
  };
  CHECK(protocols("simple") == Names{"Simple"});
  CHECK(protocols("LL,SIMPLE") == Names{"LL", "Simple"});
  CHECK(protocols("^LL,LL128") == Names{"Simple"});
  CHECK(protocols("^LL128") == Names{"LL", "Simple"});
  CHECK(protocols("[\"^ll\", \"ll128\"]") == Names{"Simple"});
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(of("nccl.algorithms", "PAT"), Contains("unknown algorithm of NCCL 'PAT'"));
  CHECK_THROWS_WITH(protocols("[\"^LL\", \"LL128\", \"Simple\"]"),
                    Contains("selects none of the values"));
  CHECK_THROWS_WITH(of("nccl.algorithms", "ring;tree"), Contains("'tree' names no function"));
  CHECK_THROWS_WITH(of("nccl.algorithms", "ring;allreduce:"),
                    Contains("selects none of the values"));
  CHECK_THROWS_WITH(of("nccl.algorithms", "all:ring"), Contains("unknown function of NCCL 'all'"));
  CHECK_THROWS_WITH(protocols("^LL128;allreduce:LL128"), Contains("protocols by function"));
  CHECK_THROWS_WITH(protocols("^Simpel"), Contains("did you mean 'Simple'?"));
}

// 16 rings of 20 GB/s fill the links of a node; 4 do not.
TEST_CASE("NCCL's channels limit the rate within a node") {
  const auto seconds = [](const char* key, const char* value) {
    const Cluster cluster = load_cluster("dgx-a100-80g", {{key, value}});
    CollectiveSetting setting;
    setting.op = Op::all_gather;
    setting.group.ranks = setting.group.per_node = 8;
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(64e9)).time.s();
  };
  const double free = seconds("nccl.min_ctas", "1");
  CHECK(seconds("nccl.max_ctas", "16") == Approx(free));
  CHECK(seconds("nccl.max_ctas", "4") == Approx(7. / 8 * 64e9 / (4 * 321e9 / 16)).epsilon(0.01));
}

// NCCL_NTHREADS: 256 KiB of LL over a ring of 16 use 4 channels of 512 threads, or 16 channels of
// 128 threads with a quarter of the rate each.
TEST_CASE("NCCL's threads decide how many channels small data uses, and the rate of each") {
  const auto us = [](const char* threads) {
    const Cluster cluster = load_cluster("dgx-a100-80g", {{"nccl.threads", threads},
                                                          {"nccl.LL.channel_rate", "1 GB/s"},
                                                          {"nccl.LL.base", "1 us"},
                                                          {"nccl.LL.local_hop", "1 us"},
                                                          {"nccl.LL.network_hop", "1 us"},
                                                          {"nccl.LL.efficiency", "1"},
                                                          {"nccl.LL.node_cap", "1000 GB/s"}});
    CollectiveSetting setting;
    setting.op = Op::all_gather;
    setting.protocol = "LL";
    setting.group = {16, 8};
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(262144)).time.us();
  };
  const double block = 262144. / 16;  // bytes; 15 steps, after 15 hops of 1 us and a base of 1 us
  CHECK(us("512") == Approx(16 + 15 * block / (4 * 1e3)).epsilon(1e-3));
  CHECK(us("128") == Approx(us("512")).epsilon(0.02));
  // The number of channels is limited, so that still fewer threads are slower.
  CHECK(us("64") == Approx(16 + 15 * block / (16 * 1e3 / 8)).epsilon(0.02));
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(us("100"), Contains("100 threads are not a whole number of warps"));
  CHECK_THROWS_WITH(us("1024"), Contains("64") && Contains("512"));
}

// Rates of nccl-tests#309: 8 nodes of 8 H100 with a forced ring, with 16 and with 24 channels.
TEST_CASE("NCCL's channels change the share of the NIC's rate") {
  const auto rate = [](const Overrides& keys) {
    Overrides all{{"nic.bandwidth", "50 GB/s"}, {"nccl.nic_efficiency", "0.8025"}};
    all.insert(all.end(), keys.begin(), keys.end());
    const Cluster cluster = load_cluster("hgx-h100-ndr", all);
    return reached_nic_rate(cluster, cluster.nccl, {64, 8}).value() * 8e-9;
  };
  CHECK(rate({}) == Approx(321));
  CHECK(rate({{"nccl.min_ctas", "16"}}) == Approx(321));
  CHECK(rate({{"nccl.min_ctas", "24"}}) == Approx(391));
  CHECK(rate({{"nccl.max_ctas", "8"}}) == Approx(321. / 2));
  // A rack with 72 NICs exceeds NCCL's limit of 64 channels. No setting changed that number, so the
  // fitted share applies.
  const Cluster rack = load_cluster("gb200-nvl72", {});
  CHECK(reached_nic_rate(rack, rack.nccl, {144, 72}).value() ==
        Approx(rack.nic_bandwidth.value.value() * rack.nccl.nic_efficiency.value));
  const NcclTuning half = nccl_machine(load_cluster("hgx-h100-ndr", {{"nccl.max_ctas", "8"}}));
  CHECK(nccl_channels(half, 8).standard == 16);
  CHECK(nccl_channels(half, 8).used == 8);
}

TEST_CASE("NCCL's choice: networks whose switches reduce") {
  const auto with_sharp = [](const char* preset, const Overrides& keys = {}) {
    Overrides all{{"nccl.sharp", "true"}};
    all.insert(all.end(), keys.begin(), keys.end());
    return nccl_machine(load_cluster(preset, all));
  };
  CHECK(chosen(nccl_machine(load_cluster("dgx-a100-80g", {})), 1 << 30, 8, 8) == "ring");
  CHECK(chosen(with_sharp("dgx-a100-80g"), 1 << 30, 8, 8) == "collnet_direct");
  CHECK(chosen(with_sharp("dgx-a100-80g"), 1 << 30, 1, 8) == "ring");
  CHECK(chosen(with_sharp("dgx-a100-80g", {{"nccl.algorithms", "CollNetChain"}}), 64, 8, 8) ==
        "collnet_chain");
  CHECK(chosen(with_sharp("hgx-h100-ndr"), 1 << 30, 8, 8) == "nvls");
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(with_sharp("commodity-25gbe"),
                    Contains("SHARP needs InfiniBand; try: network = \"rdma\""));
  CHECK_THROWS_WITH(with_sharp("aws-p5", {{"nic.link_layer", "infiniband"}}),
                    Contains("comes from a plugin for another network"));
  for (const char* preset : {"aws-p5", "gcp-a3-mega", "meta-h100-roce", "perlmutter-a100"})
    CHECK_THROWS_WITH(with_sharp(preset), Contains("nic.link_layer states another"));
  CHECK_NOTHROW(with_sharp("h100-500w-ndr"));  // states no link layer
}

TEST_CASE("NCCL's choice: the reason why the network's switches do not reduce") {
  const auto why = [](int gpus_per_node, Overrides keys) {
    keys.emplace_back("nccl.sharp", "true");
    return why_sharp_is_idle(load_cluster("dgx-a100-80g", keys), gpus_per_node);
  };
  using Catch::Matchers::Contains;
  CHECK(why(8, {}).empty());
  CHECK(why_sharp_is_idle(load_cluster("dgx2h-v100", {}), 16)
            .empty());  // the description does not enable sharp
  CHECK_THAT(why(16, {}), Contains("at most 8 GPUs a node, and these are 16"));
  CHECK_THAT(why(8, {{"nccl.version", "2.12"}}), Contains("from NCCL 2.14 on"));
  CHECK_THAT(why(8, {{"nccl.protocols", R"(["LL"])"}}), Contains("Simple alone"));
  CHECK_THAT(why(8, {{"nccl.algorithms", R"(["ring"])"}}), Contains("leaves out CollNet"));
}

// 32 nodes over EFA: a ring has 62 hops between nodes, a tree has ten.
TEST_CASE("NCCL's choice: a latency that NICs report favours the tree up to larger sizes") {
  const auto ring_from = [](const char* latency) {
    const NcclTuning tuning =
        nccl_machine(load_cluster("aws-p4d", {{"nccl.reported_latency", latency}}));
    double size = 1024;
    while (chosen(tuning, size, 32, 8) != "ring") size *= 1.1;
    return size;
  };
  CHECK(nccl_machine(load_cluster("aws-p4d", {})).nic_latency.us() == 75);
  CHECK(nccl_machine(load_cluster("dgx-a100-80g", {})).nic_latency.us() == 0);
  CHECK(ring_from("75 us") > 2 * ring_from("0 us"));
}

TEST_CASE("NCCL's version is a key of a description") {
  CHECK(load_cluster("hgx-h100-ndr", {}).nccl.minor_version == NcclTuning::newest);
  CHECK(load_cluster("hgx-h100-ndr", {{"nccl.version", "\"2.19\""}}).nccl.minor_version == 19);
  // A release with the choices of the newest one changes no calibrated interval, nor do streams
  // over RDMA.
  const auto calibrated = [](const char* preset, const Overrides& keys) {
    return is_calibrated(load_cluster(preset, keys), Backend::nccl, 2);
  };
  CHECK(calibrated("perlmutter-a100", {{"nccl.version", "\"2.24\""}}));
  CHECK_FALSE(calibrated("perlmutter-a100", {{"nccl.version", "\"2.19\""}}));
  CHECK(calibrated("hgx-h100-ndr", {{"nccl.version", "\"2.28\""}}));
  CHECK_FALSE(calibrated("hgx-h100-ndr", {{"nccl.version", "\"2.24\""}}));
  CHECK(calibrated("perlmutter-a100", {{"nccl.connections", "4"}}));
  CHECK_FALSE(calibrated("aws-ena-tcp", {{"nccl.connections", "4"}}));
  CHECK_THROWS_WITH(load_cluster("hgx-h100-ndr", {{"nccl.version", "\"1.3\""}}),
                    Catch::Matchers::Contains("not a version of NCCL known here"));
}

TEST_CASE("NCCL gets at most the nominal rate of a NIC") {
  const auto set = [](const char* share) {
    return load_cluster("hgx-h100-ndr", {{"nccl.nic_efficiency", share}});
  };
  CHECK(set("1").nccl.nic_efficiency.value == 1);
  CHECK_THROWS_WITH(set("5"), Catch::Matchers::Contains("5 is out of range") &&
                                  Catch::Matchers::Contains("more than the NIC's nominal"));
}

}  // namespace
}  // namespace lambcast
