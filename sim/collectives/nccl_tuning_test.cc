// NCCL's own model, compared with sums written out by hand from the constants of its source, one
// protocol at a time: hop latencies in us, rates in GB/s.
#include "sim/collectives/nccl_tuning.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

using Gpu = NcclTuning::Gpu;

enum class Only { ll, ll128, simple };

NcclTuning with(Only protocol, NcclTuning tuning = {}) {
  tuning.ll = protocol == Only::ll;
  tuning.ll128 = protocol == Only::ll128;
  tuning.simple = protocol == Only::simple;
  return tuning;
}

struct Case {
  NcclTuning tuning;
  std::string_view algorithm;
  double size;
  int nodes, local;
  Op op = Op::all_reduce;
};

double us_of(const Case& of) {
  for (const NcclChoice& choice :
       nccl_choices(of.tuning, of.op, Bytes(of.size), of.nodes, of.local))
    if (choice.algorithm == of.algorithm) return choice.time.us();
  return -1;
}

// Returns the microseconds of `bytes` at `rate` GB/s.
double at(double rate, double bytes) { return bytes / (1000 * rate); }

// Compares microseconds with a tolerance for rounding to nanoseconds.
Approx sum(double us) { return Approx(us).epsilon(1e-6); }

constexpr double S = 1 << 28, s = 1024;

TEST_CASE("NCCL's ring in a node") {
  // A ring over eight GPUs has 14 hops and reaches 8/14 of 240 GB/s.
  const double steps = 14, share = 8. / 14;
  CHECK(us_of({with(Only::simple), "ring", S, 1, 8}) ==
        sum(8.4 + steps * 3.4 + at(240 * share, S)));
  CHECK(us_of({with(Only::ll), "ring", S, 1, 8}) == sum(6.6 + steps * .6 + at(87.7 * share, S)));
  CHECK(us_of({with(Only::ll128), "ring", S, 1, 8}) ==
        sum(14 + steps * 1.9 + at(.92 * 240 * share, S)));
  // Half of this slow link's rate is below LL's cap. LL128 is capped at 24 channels of 20 GB/s.
  CHECK(us_of({with(Only::ll, {.link_GBps = 100}), "ring", S, 1, 8}) ==
        sum(6.6 + steps * .6 + at(50 * share, S)));
  CHECK(us_of({with(Only::ll128, {.link_GBps = 600}), "ring", S, 1, 8}) ==
        sum(14 + steps * 1.9 + at(480 * share, S)));
  // Hopper has 16 channels of 36.7 GB/s from 2.18 on; earlier versions use those of Ampere.
  CHECK(us_of({with(Only::ll128, {.gpu = Gpu::hopper, .link_GBps = 900}), "ring", S, 1, 8}) ==
        sum(14 + steps * 1.9 + at(16 * 36.7 * share, S)));
  CHECK(us_of({with(Only::ll128, {.gpu = Gpu::hopper, .minor = 17, .link_GBps = 900}), "ring", S, 1,
               8}) == sum(10 + steps * 1.9 + at(16 * 20 * share, S)));
  CHECK(us_of({with(Only::ll, {.gpu = Gpu::hopper, .link_GBps = 900}), "ring", S, 1, 8}) ==
        sum(6.6 + steps * .6 + at(141 * share, S)));
  // Without NVLink there is no LL128.
  CHECK(us_of({with(Only::simple, {.nvlink = false}), "ring", S, 1, 8}) ==
        sum(8.4 + steps * 5.7 + at(240 * share, S)));
  CHECK(us_of({with(Only::ll, {.nvlink = false}), "ring", S, 1, 8}) ==
        sum(6.6 + steps * 1.0 + at(87.7 * share, S)));
  // A mesh uses three of seven links. Before 2.18, Ampere's ring has at most 235 GB/s.
  CHECK(us_of({with(Only::simple, {.mesh = true}), "ring", S, 1, 4}) ==
        sum(8.4 + 6 * 3.4 + at(240 * 3. / 7 * 4 / 6, S)));
  CHECK(us_of({with(Only::simple, {.minor = 17}), "ring", S, 1, 8}) ==
        sum(8.4 + steps * 3.4 + at(235 * share, S)));
  CHECK(us_of({with(Only::simple, {.gpu = Gpu::volta, .minor = 17}), "ring", S, 1, 8}) ==
        sum(8.4 + steps * 3.4 + at(240 * share, S)));
  // An all-gather goes once around the ring, a broadcast passes through every rank.
  CHECK(us_of({with(Only::simple), "ring", S, 1, 8, Op::all_gather}) ==
        sum(8.4 + 7 * 3.4 + at(240 * 8. / 7, S)));
  CHECK(us_of({with(Only::simple), "ring", S, 1, 8, Op::broadcast}) ==
        sum(8.4 + 8 * 3.4 + at(240, S)));
}

TEST_CASE("NCCL's ring between nodes") {
  // Two nodes have eight GPUs and one NIC of 25 GB/s each, listed as 24: 28 hops inside nodes, two
  // between them.
  const double share = 16. / 30;
  const double simple = 8.4 + 28 * 3.4 + 2 * 14;
  CHECK(us_of({with(Only::simple), "ring", S, 2, 8}) == sum(1.4 * simple + at(24 * share, S)));
  CHECK(us_of({with(Only::simple, {.gpu = Gpu::volta}), "ring", S, 2, 8}) ==
        sum(1.9 * simple + at(24 * share, S)));
  // Below 64 bytes per channel (2) and rank (16), the plateau factor 1.4 does not apply.
  CHECK(us_of({with(Only::simple), "ring", 2047, 2, 8}) == sum(simple + at(24 * share, 2047)));
  CHECK(us_of({with(Only::simple), "ring", 2048, 2, 8}) ==
        sum(1.4 * simple + at(24 * share, 2048)));
  // Posting a message takes 1 us under LL, three times that under Simple, and twice as much on AMD.
  CHECK(us_of({with(Only::simple, {.amd = true}), "ring", s, 2, 8}) ==
        sum(8.4 + 28 * 6 + 2 * 14 + at(24 * share, s)));
  CHECK(us_of({with(Only::ll), "ring", S, 2, 8}) ==
        sum(6.6 + 28 * 1 + 2 * 2.7 + at(12 * share, S)));
  CHECK(us_of({with(Only::ll, {.amd = true}), "ring", S, 2, 8}) ==
        sum(6.6 + 28 * 2 + 2 * 2.7 + at(12 * share, S)));
  // The single channel found by the search has 20 GB/s under LL128, below .92 of 24 GB/s.
  CHECK(us_of({with(Only::ll128), "ring", S, 2, 8}) ==
        sum(14 + 28 * 1.9 + 2 * 4.0 + at(20 * share, S)));
  CHECK(us_of({with(Only::ll128, {.nic_GBps = 10}), "ring", S, 2, 8}) ==
        sum(14 + 28 * 1.9 + 2 * 4.0 + at(.92 * 10 * share, S)));
  // Half of the rate of four rings exceeds LL's cap, which depends on the CPU and on whether there
  // are more than two nodes.
  const auto lanes = [](bool amd, int nodes) {
    return us_of({with(Only::ll, {.amd = amd, .nics = 4}), "ring", S, nodes, 8}) -
           us_of({with(Only::ll, {.amd = amd, .nics = 4}), "ring", s, nodes, 8});
  };
  CHECK(lanes(false, 2) == sum(at(39 * share, S - s)));
  CHECK(lanes(true, 2) == sum(at(22.5 * share, S - s)));
  CHECK(lanes(false, 4) == sum(at(20.4 * 32 / 62, S - s)));
  CHECK(lanes(true, 4) == sum(at(19.0 * 32 / 62, S - s)));
  // With one GPU per node every hop is exposed and takes a tree's latency.
  CHECK(us_of({with(Only::ll), "ring", s, 4, 1}) == sum(6.6 + 6 * 5.0 + at(12 * 4. / 6, s)));
  CHECK(us_of({with(Only::ll128), "ring", S, 4, 1}) == sum(14 + 6 * 8.5 + at(20. * 4 / 6, S)));
  // Before 2.23 hops were not exposed, there was one hop more between nodes, and LL128 had 0.7 of
  // the rate.
  CHECK(us_of({with(Only::ll128, {.minor = 22}), "ring", S, 4, 1}) ==
        sum(14 - 2 * 1.9 + 8 * 4.0 + at(.7 * 24 * 4 / 6, S)));
  // Version 2.12 has slower hops and no cost of posting. Its LL has a quarter of the rate, and hops
  // inside nodes take 1.8 times as long.
  const NcclTuning old{.minor = 12};
  CHECK(us_of({with(Only::ll, old), "ring", S, 2, 8}) ==
        sum(3.6 + 26 * 1.8 * .47 + 4 * 2.7 + at(6 * share, S)));
  CHECK(us_of({with(Only::simple, old), "ring", 65535, 2, 8}) ==
        sum(8.4 + 26 * 3.4 + 4 * 28 + at(24 * share, 65535)));
  CHECK(us_of({with(Only::simple, old), "ring", 65536, 2, 8}) ==
        sum(1.9 * (8.4 + 26 * 3.4 + 4 * 28) + at(24 * share, 65536)));
  // With one channel instead of two, the ring has half the rate.
  CHECK(us_of({with(Only::simple, {.max_ctas = 1}), "ring", S, 2, 8}) ==
        sum(1.4 * simple + at(12 * share, S)));
}

TEST_CASE("NCCL's tree") {
  // Four nodes have 7 hops inside and log2 4 hops between nodes, both twice. The rate is 0.92 of 24
  // GB/s, at most one channel's 17.8 GB/s, and half of it counts.
  const auto time = [](const NcclTuning& tuning, double size, int nodes = 4) {
    return us_of({tuning, "tree", size, nodes, 8});
  };
  const double bus = 17.8, big = 64. * (1 << 23);
  CHECK(time(with(Only::simple), big) == sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(bus / 2, big)));
  CHECK(time(with(Only::ll), big) == sum(6.8 + 2 * (7 * .6 + 2 * 5.0) + at(bus / 3.8 / 2, big)));
  CHECK(time(with(Only::ll128), big) ==
        sum(14 + 2 * (7 * 1.25 + 2 * 8.5) + at(bus * .9375 / 2, big)));
  // The share of the rate depends on the size: 64 KiB are 64 B times 2^10. The list of shares ends
  // at 64 B times 2^22.
  CHECK(time(with(Only::simple), 65536) ==
        sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(bus * .6 / 2, 65536)));
  CHECK(time(with(Only::simple), 64) == sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(bus * .9 / 2, 64)));
  CHECK(time(with(Only::simple), 63) == sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(bus / 2, 63)));
  CHECK(time(with(Only::simple), big / 2) ==
        sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(bus * .9 / 2, big / 2)));
  CHECK(time(with(Only::simple, {.nic_GBps = 10}), big) ==
        sum(8.4 + 2 * (7 * 4 + 2 * 14) + at(.92 * 10 / 2, big)));
  // On two nodes the rate inside the node counts, raised to twice the NIC's. A channel has 23.6
  // GB/s, also if the channels of the search are doubled.
  CHECK(time(with(Only::simple, {.nic_GBps = 10}), big, 2) ==
        sum(8.4 + 2 * (7 * 4 + 14) + at(.92 * 20 / 2, big)));
  CHECK(time(with(Only::simple), big, 2) == sum(8.4 + 2 * (7 * 4 + 14) + at(23.6 / 2, big)));
  CHECK(time(with(Only::simple, {.nics = 4}), big, 2) ==
        sum(8.4 + 2 * (7 * 4 + 14) + at(4 * 23.6 / 2, big)));
  // Channels of 25 GB/s and more are found as two halves each; on Hopper only up to four of them.
  CHECK(time(with(Only::simple, {.nics = 4, .nic_GBps = 28}), big, 2) ==
        sum(8.4 + 2 * (7 * 4 + 14) + at(.92 * 4 * 48 / 2, big)));
  const auto hopper = [](int nics) {
    return with(Only::simple, {.gpu = Gpu::hopper, .link_GBps = 900, .nics = nics, .nic_GBps = 50});
  };
  CHECK(time(hopper(4), big, 4) == sum(8.4 + 2 * (7 * 4 + 28) + at(.92 * 4 * 48 / 2, big)));
  CHECK(time(hopper(8), big, 4) == sum(8.4 + 2 * (7 * 4 + 28) + at(8 * 36. / 2, big)));
  CHECK(time(with(Only::simple, {.link_GBps = 20}), big, 2) ==
        sum(8.4 + 2 * (7 * 4 + 14) + at(.92 * 20 / 2, big)));
  CHECK(time(with(Only::ll128, {.nics = 8, .max_ctas = 1}), big, 2) ==
        sum(14 + 2 * (7 * 1.25 + 8.5) + at(20. / 2, big)));
  CHECK(time(with(Only::simple), big, 1) == -1);
  CHECK(time(with(Only::simple, {.tree = false}), big) == -1);
  // In 2.19 a hop takes 28 us.
  CHECK(time(with(Only::simple, {.minor = 19}), big) ==
        sum(2 * (7 * 28 + 2 * 28) + at(bus / 2, big)));
}

TEST_CASE("NCCL's tables equal those of tuning.cc and search.cc") {
  // A tree's share of its rate, from 64 bytes on, for sizes that double.
  const std::vector<std::vector<double>> shares{
      {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
      {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
      {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}};
  const double slow = 1e-3;  // GB/s of links, so that latency is negligible
  const double reached[] = {.92 * slow / 3.8, .92 * slow * .9375, .92 * slow};
  for (const Only protocol : {Only::ll, Only::ll128, Only::simple}) {
    const auto row = static_cast<std::size_t>(protocol);
    const NcclTuning tuning = with(protocol, {.link_GBps = slow});
    const double latency = us_of({tuning, "tree", 1e-9, 4, 8});
    for (std::size_t i = 0; i < 23; ++i) {
      INFO("protocol " << row << ", 64 B times 2^" << i);
      const double size = 64 * std::exp2(static_cast<double>(i));
      CHECK(us_of({tuning, "tree", size, 4, 8}) - latency ==
            Approx(at(reached[row] / 2 * shares[row][i], size)).epsilon(1e-4));
    }
  }
  // Listed speeds to which a NIC's rate is rounded down.
  const auto check_steps = [](Gpu gpu, const std::vector<double>& steps) {
    for (const double step : steps) {
      const auto of = [&](double nic) {
        const NcclTuning tuning = with(Only::simple, {.gpu = gpu, .nic_GBps = nic});
        return us_of({tuning, "ring", S, 2, 8}) - us_of({tuning, "ring", 1e-3, 2, 8});
      };
      INFO(step << " GB/s");
      // A rate just 0.1 % below a step is rounded down to the next one.
      const double latency = (gpu == Gpu::volta ? .9 : .4) * (8.4 + 28 * 3.4 + 2 * 14);
      CHECK(of(step * 1.0001) - latency == Approx(at(step * 16. / 30, S)).epsilon(1e-4));
      CHECK(of(step * 0.9995) - latency == Approx(at(step * 16. / 30, S)).epsilon(1e-4));
    }
  };
  check_steps(Gpu::ampere,
              {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12});
  check_steps(Gpu::hopper,
              {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12});
  check_steps(Gpu::blackwell,
              {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12});
}

TEST_CASE("NCCL's latencies differ between versions") {
  // Latency of a message without transfer time: the base latency of a tree over four nodes of eight
  // GPUs, its 14 hops over NVLink or PCIe, and its four hops between nodes.
  struct Tree {
    int from, to;
    Only protocol;
    double base, nvlink, pcie, network;
  };
  const std::vector<Tree> trees{
      {12, 17, Only::ll, 4.4, .52, 1.0, 5.0},   {12, 17, Only::ll128, 4.4, 1.25, -1, 8.5},
      {12, 17, Only::simple, 0, 28, 28, 28},    {18, 18, Only::ll, 6.8, .6, 1.0, 5.0},
      {18, 18, Only::ll128, 14, 1.25, -1, 8.5}, {18, 18, Only::simple, 0, 4, 6, 14},
      {19, 22, Only::ll, 6.8, .6, 1.0, 5.0},    {19, 22, Only::ll128, 14, 1.25, -1, 8.5},
      {19, 22, Only::simple, 0, 28, 28, 28},    {23, 28, Only::ll, 6.8, .6, 1.0, 5.0},
      {23, 28, Only::ll128, 14, 1.25, -1, 8.5}, {23, 28, Only::simple, 8.4, 4, 4, 14}};
  const auto start = [](std::string_view algorithm, Only protocol, int minor, bool nvlink,
                        int nodes) {
    const Case of{with(protocol, {.minor = minor, .nvlink = nvlink}), algorithm, 1e-3, nodes, 8};
    return us_of(of);
  };
  for (const Tree& tree : trees) {
    for (int minor = tree.from; minor <= tree.to; ++minor) {
      INFO("2." << minor << ", protocol " << static_cast<int>(tree.protocol));
      CHECK(start("tree", tree.protocol, minor, true, 4) ==
            sum(tree.base + 14 * tree.nvlink + 4 * tree.network));
      if (tree.pcie > 0)
        CHECK(start("tree", tree.protocol, minor, false, 4) ==
              sum(tree.base + 14 * tree.pcie + 4 * tree.network));
    }
  }
  // A ring over two nodes has 26 hops inside and four between nodes in versions that do not count
  // posting.
  for (int minor = 12; minor < 18; ++minor) {
    INFO("2." << minor);
    const double network = minor < 14 ? 28 : 9.6;
    CHECK(start("ring", Only::simple, minor, true, 2) == sum(8.4 + 26 * 3.4 + 4 * network));
    CHECK(start("ring", Only::simple, minor, false, 2) == sum(8.4 + 26 * 5.7 + 4 * network));
    CHECK(start("ring", Only::ll128, minor, true, 2) == sum(10 + 26 * 1.9 + 4 * 4.0));
    CHECK(start("ring", Only::ll, minor, false, 2) == sum(3.6 + 26 * 1.8 * 1.0 + 4 * 2.7));
  }
  for (int minor = 18; minor < 29; ++minor) {
    INFO("2." << minor);
    const int between = minor < 23 ? 4 : 2;
    CHECK(start("ring", Only::simple, minor, false, 2) ==
          sum(8.4 + (30 - between) * 5.7 + between * 14));
    CHECK(start("ring", Only::ll128, minor, true, 2) ==
          sum(14 + (30 - between) * 1.9 + between * 4.0));
  }
  // LL has a quarter of a ring's rate before 2.21, and half of it from 2.21 on.
  for (const int minor : {19, 20, 21, 22})
    CHECK(us_of({with(Only::ll, {.minor = minor}), "ring", S, 2, 8}) -
              us_of({with(Only::ll, {.minor = minor}), "ring", s, 2, 8}) ==
          sum(at(24 * (minor < 21 ? .25 : .5) * 16 / 30, S - s)));
}

TEST_CASE("NCCL's hops between nodes include the latency that a plugin reports") {
  // EFA's plugin reports 75 us, which count twice under Simple, at each of six hops of a ring over
  // four nodes or four hops of a tree.
  const auto more = [](NcclTuning tuning, std::string_view algorithm, int nodes, double size) {
    NcclTuning with_plugin = tuning;
    with_plugin.nic_latency = Duration::microseconds(75);
    return us_of({with_plugin, algorithm, size, nodes, 8}) -
           us_of({tuning, algorithm, size, nodes, 8});
  };
  CHECK(more(with(Only::ll), "ring", 4, s) == sum(6 * 75));
  CHECK(more(with(Only::ll128), "ring", 4, s) == sum(6 * 75));
  CHECK(more(with(Only::simple), "ring", 4, 64) == sum(6 * 150));
  CHECK(more(with(Only::ll), "tree", 4, s) == sum(4 * 75));
  CHECK(more(with(Only::simple), "tree", 4, s) == sum(4 * 150));
  // In a ring's plateau the latency counts 1.4 times; within a node none is added.
  CHECK(more(with(Only::simple), "ring", 4, S) == sum(1.4 * 6 * 150));
  CHECK(more(with(Only::simple), "ring", 1, S) == 0);
  NcclTuning hopper{.gpu = Gpu::hopper, .link_GBps = 450, .in_switch = true, .nics = 8};
  CHECK(more(hopper, "nvls_tree", 4, S) == sum(4 * 150));
  CHECK(more(hopper, "nvls", 1, S) == 0);
  hopper.minor = 18;  // NVLSTree of 2.18 ignored the latency
  CHECK(more(hopper, "nvls_tree", 4, S) == 0);
}

TEST_CASE("NCCL's NVLink switch") {
  const NcclTuning hopper{
      .gpu = Gpu::hopper, .link_GBps = 450, .in_switch = true, .nics = 8, .nic_GBps = 50};
  const auto time = [&](int minor, int nodes, NcclTuning tuning) {
    tuning.minor = minor;
    return us_of({tuning, nodes > 1 ? "nvls_tree" : "nvls", S, nodes, 8});
  };
  // NVLS uses 16 channels, one of them for the sums, at 0.85 of the links' rate, in both
  // directions.
  const double inside = 450. / 16 * .85 * 15 / 16 * 2;
  CHECK(time(28, 1, hopper) == sum(25 + at(16 * inside * 8 / 14, S)));
  // Eight NICs at 48 GB/s give 24 GB/s per channel, on two nodes twice that.
  CHECK(time(28, 2, hopper) == sum(25 + 2 * 20.9 + at(16 * inside * 16 / 30, S)));
  CHECK(time(28, 4, hopper) == sum(25 + 4 * 20.9 + at(16. * 24 * 32 / 62, S)));
  // Sixteen GPUs with a NIC each exceed the cap of the switch, which depends on the number of
  // nodes.
  const NcclTuning wide{.gpu = Gpu::hopper,
                        .link_GBps = 900,
                        .gpus_per_node = 16,
                        .in_switch = true,
                        .nics = 16,
                        .nic_GBps = 50};
  CHECK(us_of({wide, "nvls_tree", S, 2, 16}) == sum(25 + 2 * 20.9 + at(16 * 57.7 * 32 / 62, S)));
  CHECK(us_of({wide, "nvls_tree", S, 4, 16}) == sum(25 + 4 * 20.9 + at(16 * 45.5 * 64 / 126, S)));
  // Before 2.28 the rate was 5/6 of the links, or of half the NICs.
  CHECK(time(27, 1, hopper) == sum(25 + at(450. * 5 / 6, S)));
  CHECK(time(27, 2, hopper) == sum(25 + 2 * 14 + at(16. * 24 * 5 / 6, S)));
  CHECK(time(27, 4, hopper) == sum(25 + 4 * 14 + at(16. * 12 * 5 / 6, S)));
  // Blackwell has 24 channels in a node and 32 between nodes.
  NcclTuning blackwell = hopper;
  blackwell.gpu = Gpu::blackwell;
  CHECK(time(28, 1, blackwell) == sum(25 + at(450 * .74 * 23 / 24 * 2 * 8 / 14, S)));
  CHECK(time(28, 4, blackwell) == sum(25 + 4 * 20.9 + at(8 * 48. * 32 / 62, S)));
  // NVLS needs 2.18, Simple, and several GPUs per node.
  CHECK(time(18, 1, hopper) > 0);
  CHECK(time(17, 1, hopper) == -1);
  CHECK(time(28, 1, with(Only::ll, hopper)) == -1);
  CHECK(us_of({hopper, "nvls_tree", S, 4, 1}) == -1);
}

TEST_CASE("NCCL's CollNet") {
  // Eight NICs are listed at 24 GB/s. The search allows a ring twice that rate inside the node, and
  // half of it counts.
  NcclTuning tuning{.nics = 8};
  tuning.sharp = true;
  const auto direct = [&](int minor, NcclTuning of, int nodes = 4, int local = 8) {
    of.minor = minor;
    return us_of({of, "collnet_direct", S, nodes, local});
  };
  const auto chain = [&](int minor, NcclTuning of, int nodes = 4, int local = 8) {
    of.minor = minor;
    return us_of({of, "collnet_chain", S, nodes, local});
  };
  for (const int nodes : {2, 4, 16}) {
    CHECK(direct(28, tuning, nodes) == sum(2 * (3.7 + 7 * .4) + 31 + at(8 * 48 / 2., S)));
    // A chain is limited by the links.
    CHECK(chain(28, tuning, nodes) == sum(2 * 7 * 2.8 + 30 + at(240 / 2., S)));
  }
  // The cases are one GPU per node, two GPUs per NIC, and Hopper.
  CHECK(direct(28, tuning, 4, 1) == sum(31 + at(48 / 2., S)));
  CHECK(chain(28, tuning, 4, 1) == sum(30 + at(48 / 2., S)));
  NcclTuning fewer = tuning;
  fewer.nics = 4;
  CHECK(direct(28, fewer) == sum(2 * (3.7 + 7 * .4) + 31 + at(4 * 48 / 1.5 / 2, S)));
  NcclTuning hopper = tuning;
  hopper.gpu = Gpu::hopper;
  hopper.nic_GBps = 50;
  CHECK(direct(28, hopper) == sum(2 * (3.7 + 7 * .4) + 31 + at(8 * 48 * .85 / 2, S)));
  // These constants belong to 2.14 to 2.18.
  CHECK(direct(18, tuning) == sum(2 * (8 + 7 * .5) + 10.7 + at(8 * 48 / 2., S)));
  CHECK(chain(18, tuning) == sum(2 * 7 * 4.75 + 14 + at(240 / 2., S)));
  CHECK(chain(17, tuning) == sum(2 * 7 * 8. + at(.75 * 240 / 2, S)));
  CHECK(direct(13, tuning) == -1);
  CHECK(direct(14, tuning) > 0);
  // The latency that a plugin reports is added, twice because of the flush.
  NcclTuning slow = tuning;
  slow.nic_latency = Duration::microseconds(5);
  CHECK(chain(28, slow) - chain(28, tuning) == sum(10));
  // CollNet needs Simple and several nodes of up to eight GPUs; the direct algorithm needs an
  // NVSwitch.
  CHECK(direct(28, tuning, 1) == -1);
  CHECK(chain(28, tuning, 4, 9) == -1);
  CHECK(chain(28, with(Only::ll, tuning)) == -1);
  NcclTuning mesh = tuning;
  mesh.mesh = true;
  CHECK(direct(28, mesh) == -1);
  CHECK(chain(28, mesh) > 0);
  tuning.sharp = false;
  CHECK(chain(28, tuning) == -1);
  // NVLS over several nodes runs at the rate of the NICs.
  hopper.in_switch = true;
  hopper.link_GBps = 450;
  const auto nvls = [&](int minor) {
    hopper.minor = minor;
    return us_of({hopper, "nvls", S, 4, 8});
  };
  CHECK(nvls(28) == sum(25 + 18 + at(16. * 24 * 32 / 62, S)));
  CHECK(nvls(27) == sum(25 + 18 + at(16. * 24 * 5 / 6, S)));
  hopper.sharp = false;
  CHECK(nvls(28) == -1);
}

TEST_CASE("NCCL's channels and rings per NIC") {
  // Each NIC in use gives a ring of two channels; there are at most as many rings as GPUs.
  CHECK(nccl_channels({.nics = 8}, 8).standard == 16);
  CHECK(nccl_channels({.nics = 8}, 4).standard == 8);
  CHECK(nccl_channels({.nics = 1}, 4).standard == 2);
  CHECK(nccl_channels({.nics = 16}, 8).standard == 16);
  CHECK(nccl_channels({.nics = 8, .min_ctas = 24}, 8).used == 24);
  CHECK(nccl_channels({.nics = 8, .max_ctas = 4}, 8).used == 4);
  CHECK(nccl_channels_of_a_lane({.nics = 8}, 4) == 2);
  CHECK(nccl_channels_of_a_lane({.nics = 1, .min_ctas = 4}, 4) == 4);
  // Two NICs of one ring count as one with twice the rate: 50 GB/s are listed as 48.
  CHECK(us_of({with(Only::simple, {.nics = 16}), "ring", S, 2, 8}) ==
        sum(1.4 * (8.4 + 28 * 3.4 + 2 * 14) + at(8 * 48 * 16. / 30, S)));
  // A rate below every step gets the lowest step of the list.
  CHECK(us_of({with(Only::simple, {.nic_GBps = .01}), "ring", S, 2, 8}) ==
        sum(1.4 * (8.4 + 28 * 3.4 + 2 * 14) + at(.12 * 16. / 30, S)));
}

}  // namespace
}  // namespace lambcast
