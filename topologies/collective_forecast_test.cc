#include "topologies/collective_forecast.h"

#include <catch2/catch.hpp>

#include "sim/collectives/algorithms.h"

namespace lambcast {
namespace {

// Checks that a curve equals separately planned sizes, up to rounding to a picosecond in each of
// some hundred rounds.
void check_curve(const Cluster& cluster, const CollectiveSetting& setting) {
  CollectiveSeries series = prepare(cluster, setting);
  CollectiveCurve curve = curve_of(cluster, setting);
  for (const double size : {8.0, 1000.0, 5e4, 3e5, 7e6, 1e9}) {
    INFO(cluster.name << " " << name_of(setting.op) << " " << setting.algorithm << " over "
                      << setting.group.ranks << ", " << size << " B");
    CHECK(curve.time(Bytes(size)).s() ==
          Approx(forecast(series, Bytes(size)).time.s()).epsilon(1e-6).margin(1e-9));
  }
}

TEST_CASE("collective curve: every size has the time that planning gives") {
  for (const char* preset : {"hgx-h100-ndr", "aws-p4d", "perlmutter-a100", "commodity-10gbe"}) {
    const Cluster cluster = load_cluster(preset, {});
    for (const int nodes : {1, 2, 5}) {
      CollectiveSetting setting;
      setting.group.per_node = cluster.gpus_per_node;
      setting.group.ranks = nodes * cluster.gpus_per_node;
      for (const Backend backend : {Backend::nccl, Backend::mpi_host}) {
        setting.backend = backend;
        for (std::size_t op = 0; op < op_names().size(); ++op) {
          setting.op = static_cast<Op>(op);
          setting.algorithm.clear();
          check_curve(cluster, setting);
          for (const std::string& algorithm : algorithm_names()) {
            if (algorithm.starts_with("nvls") || in_network(algorithm, setting.group) ||
                !supports(algorithm, setting.op, setting.group))
              continue;
            setting.algorithm = algorithm;
            check_curve(cluster, setting);
          }
        }
      }
    }
  }
}

// LL128 and LL serve NCCL's collectives. An all_to_all and a pipeline's messages use Simple between
// nodes, and LL inside a node for up to 16 KiB per message.
TEST_CASE("collective forecast: NCCL sends messages with LL or Simple") {
  const Cluster cluster = load_cluster("hgx-h100-ndr", {});
  const auto protocol = [&](Op op, int ranks, double size, const char* forced = "") {
    CollectiveSetting setting;
    setting.op = op;
    setting.group.ranks = ranks;
    setting.group.per_node = 8;
    setting.protocol = forced;
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(size)).protocol;
  };
  CHECK(protocol(Op::all_to_all, 16, 1024) == "Simple");
  CHECK(protocol(Op::all_to_all, 16, 1e6) == "Simple");
  CHECK(protocol(Op::send_recv, 16, 1e6) == "Simple");
  CHECK(protocol(Op::all_to_all, 8, 8 * 16384) == "LL");
  CHECK(protocol(Op::all_to_all, 8, 8 * 16384 + 8) == "Simple");
  CHECK(protocol(Op::send_recv, 8, 16384) == "LL");
  CHECK(protocol(Op::send_recv, 8, 16385) == "Simple");
  CHECK(protocol(Op::all_to_all, 16, 1e6, "LL") == "LL");
  CHECK(protocol(Op::all_gather, 16, 1e6) == "LL128");
}

// NCCL_PROTO applies to collectives (src/graph/tuning.cc); src/enqueue.cc decides for messages.
TEST_CASE("collective forecast: a list of protocols does not apply to messages between two ranks") {
  const auto protocol = [](const char* listed, Op op, int ranks, double size) {
    const Cluster cluster = load_cluster("hgx-h100-ndr", {{"nccl.protocols", listed}});
    CollectiveSetting setting;
    setting.op = op;
    setting.group.ranks = ranks;
    setting.group.per_node = 8;
    const Duration curve = curve_of(cluster, setting).time(Bytes(size));
    CollectiveSeries series = prepare(cluster, setting);
    const Collective planned = forecast(series, Bytes(size));
    CHECK(planned.time.s() == Approx(curve.s()).epsilon(1e-6));
    return planned.protocol;
  };
  CHECK(protocol("LL", Op::all_to_all, 16, 1e6) == "Simple");
  CHECK(protocol("LL", Op::send_recv, 16, 1e6) == "Simple");
  CHECK(protocol("LL", Op::all_gather, 16, 1e6) == "LL");
  CHECK(protocol("Simple", Op::all_to_all, 8, 8 * 16384) == "LL");
  CHECK(protocol("Simple", Op::all_reduce, 8, 16384) == "Simple");
}

// Rails of eight nodes are joined by spines with a sixteenth of the rails' bandwidth. Messages that
// leave through the NIC of their receiver's rail never cross the spines.
TEST_CASE("collective forecast: PXN keeps messages on their rail") {
  const auto seconds = [](const char* kind, const char* oversubscription, const char* pxn, Op op) {
    const Cluster cluster =
        load_cluster("hgx-h100-ndr", {{"fabric.kind", kind},
                                      {"fabric.nodes_per_leaf", "8"},
                                      {"fabric.oversubscription", oversubscription},
                                      {"nccl.pxn", pxn}});
    CollectiveSetting setting;
    setting.op = op;
    setting.group.ranks = 64;
    setting.group.per_node = 8;
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(1e9)).time.s();
  };
  const double free = seconds("rail-optimised", "1", "true", Op::all_to_all);
  CHECK(seconds("rail-optimised", "16", "true", Op::all_to_all) == Approx(free));
  CHECK(seconds("rail-optimised", "16", "false", Op::all_to_all) > 4 * free);
  const double passed_on = seconds("rail-optimised", "1", "true", Op::send_recv);
  CHECK(seconds("rail-optimised", "16", "true", Op::send_recv) == Approx(passed_on));
  // With a single leaf for all nodes, PXN changes nothing.
  CHECK(seconds("fat-tree", "1", "true", Op::all_to_all) ==
        Approx(seconds("fat-tree", "1", "false", Op::all_to_all)));
  // PXN does not apply over sockets, or between GPUs joined by PCIe.
  CHECK_FALSE(transport_of(load_cluster("aws-ena-tcp", {}), Backend::nccl).pxn);
  CHECK_FALSE(transport_of(load_cluster("rtx6000d-roce", {}), Backend::nccl).pxn);
  CHECK_FALSE(transport_of(load_cluster("hgx-h100-ndr", {}), Backend::mpi_host).pxn);
}

// In a node the kernels of an all_to_all write directly to their peers. A proxy thread posts
// messages over the network; MPI posts every message.
TEST_CASE("collective forecast: NCCL posts messages that leave the node, MPI posts all") {
  const auto seconds = [](Backend backend, int ranks, const char* overhead) {
    const Cluster cluster = load_cluster(
        "hgx-h100-ndr", {{"nccl.message_overhead", overhead}, {"mpi.message_overhead", overhead}});
    CollectiveSetting setting;
    setting.op = Op::all_to_all;
    setting.backend = backend;
    setting.algorithm = "linear";
    setting.group.ranks = ranks;
    setting.group.per_node = 8;
    CollectiveSeries series = prepare(cluster, setting);
    return forecast(series, Bytes(1e5)).time.s();
  };
  const auto posting = [&](Backend backend, int ranks) {
    return seconds(backend, ranks, "11 us") - seconds(backend, ranks, "1 us");
  };
  CHECK(posting(Backend::nccl, 8) == 0);
  CHECK(posting(Backend::nccl, 32) == Approx(24 * 10e-6));
  CHECK(posting(Backend::mpi_host, 8) == Approx(7 * 10e-6));
  CHECK(posting(Backend::mpi_host, 32) == Approx(31 * 10e-6));
}

// Prices a curve of `before` for `after`, and returns whether any time changes.
bool moves_to(const Cluster& before, const Cluster& after, const CollectiveSetting& setting) {
  constexpr double sizes[] = {8.0, 5e4, 7e6, 1e9};
  CollectiveCurve curve = curve_of(before, setting), other = curve_of(after, setting);
  std::vector<Duration> times;
  for (const double size : sizes) times.push_back(curve.time(Bytes(size)));
  curve.reprice(std::make_shared<const Transport>(transport_of(after, setting.backend)),
                machines_of(after, setting.backend, setting.group));
  bool moved = false;
  for (std::size_t i = 0; i < std::size(sizes); ++i) {
    INFO(before.name << ", " << name_of(setting.op) << " over " << setting.group.ranks << ", "
                     << sizes[i] << " B");
    CHECK(curve.time(Bytes(sizes[i])) == other.time(Bytes(sizes[i])));
    moved |= curve.time(Bytes(sizes[i])) != times[i];
  }
  return moved;
}

TEST_CASE("collective curve: after repricing it equals the curve of the new rates") {
  const std::vector<std::pair<std::string, std::string>> changes{
      {"nic.bandwidth", "3 Gbit/s"},
      {"node.gpu_link", "2 GB/s"},
      {"node.host_link", "1 GB/s"},
      {"nccl.link_efficiency", "0.31"},
      {"nccl.tree_efficiency", "0.5"},
      {"nccl.slice", "77777 B"},
      {"nccl.Simple.base", "71 us"},
      {"nccl.Simple.network_hop", "9 us"},
      {"nccl.LL.efficiency", "0.11"},
      {"nccl.LL.node_cap", "0.3 GB/s"},
      {"nccl.LL.channel_rate", "1 GB/s"},
      {"nccl.message_overhead", "8 us"},
      {"nccl.connections", "8"},
      {"nccl.flow_cap", "0.1 GB/s"},
      {"nccl.max_ctas", "1"},
      {"nccl.algorithms", "[\"ring\"]"},
      {"mpi.flow_cap", "0.1 GB/s"},
      {"mpi.message_overhead", "9 us"}};
  const std::pair<std::string, std::string> of_one{"nccl.flow_cap", "0.2 GB/s"};
  for (const char* preset : {"hgx-h100-ndr", "commodity-10gbe"}) {
    const Cluster before = load_cluster(preset, {of_one});
    for (const auto& change : changes) {
      const Cluster after = load_cluster(preset, {of_one, change});
      CollectiveSetting setting;
      bool moved = false;
      for (const Backend backend : {Backend::nccl, Backend::mpi_host}) {
        for (const ProcessGroup group : {ProcessGroup{2, 2}, ProcessGroup{12, 2}, {5, 1}}) {
          for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all}) {
            if (group.per_node > before.gpus_per_node) continue;
            setting.op = op;
            setting.group = group;
            setting.backend = backend;
            moved |= moves_to(before, after, setting);
          }
        }
      }
      INFO(preset << " " << change.first);
      CHECK(moved);
    }
  }
}

// The table of this machine was measured with rings only (NCCL_ALGO). It has 165.8 us for 4 MiB,
// 209.2 for 8 and 301.9 for 16. Without that setting, NCCL would choose trees up to 8 MiB.
TEST_CASE("collective forecast: an unmeasured tree costs no more than a measured ring") {
  const Cluster cluster = load_cluster("dgx-a100-80g", {});
  CollectiveSetting setting;
  setting.group = {16, 8};
  CollectiveSeries series = prepare(cluster, setting);
  CollectiveCurve curve = curve_of(cluster, setting);
  setting.algorithm = "ring";
  CollectiveSeries ring = prepare(cluster, setting);
  Duration before;
  for (double size = 1 << 20; size <= 1 << 30; size *= 2) {
    INFO(size);
    const Collective chosen = forecast(series, Bytes(size));
    CHECK(chosen.time <= forecast(ring, Bytes(size)).time);
    CHECK(chosen.time > before);
    before = chosen.time;
    const auto [time, algorithm, protocol] = curve.forecast(Bytes(size));
    CHECK(time.s() == Approx(chosen.time.s()).epsilon(1e-6));
    CHECK(algorithm == chosen.chosen);
    const CalibratedInterval interval =
        interval_of(cluster, Backend::nccl, Op::all_reduce, Bytes(size), setting.group, chosen.time,
                    {chosen.chosen, chosen.protocol});
    CHECK(interval.ground == (chosen.chosen == "ring" ? Ground::same_hardware : Ground::algorithm));
    CHECK(interval.high <=
          uncalibrated_interval(Bytes(size), 16, NicRate::effective, Typical::rdma, chosen.time)
                  .high *
              (chosen.chosen == "ring" ? 4 : 1));
  }
  CHECK(forecast(series, Bytes(8 << 20)).chosen == "tree");
  // The forecast names the algorithm that was priced, not NCCL's choice.
  CHECK(forecast(series, Bytes(8 << 20)).algorithm == "ring");
  CHECK(forecast(series, Bytes(8 << 20)).time.us() == Approx(209.2).epsilon(0.1));
  // A tree that is requested by name has the prior cost of trees.
  setting.algorithm = "tree";
  CollectiveSeries tree = prepare(cluster, setting);
  CHECK(forecast(tree, Bytes(8 << 20)).time > forecast(ring, Bytes(8 << 20)).time);
}

// Measured on this machine: 1,502 us for 1 MiB and 922 us for 2 MiB.
TEST_CASE("collective forecast: switching points of NCCL's rule are known, with the alternatives") {
  const Cluster cluster = load_cluster("alps-gh200-tcp", {});
  CollectiveSetting setting;
  setting.group = {8, 4};
  CollectiveSeries series = prepare(cluster, setting);
  CollectiveCurve curve = curve_of(cluster, setting);
  const auto tip = [&](double size) {
    const Collective chosen = forecast(series, Bytes(size));
    return tip_of(series.request, series.machines, series.transport, chosen.time);
  };
  // A message of twice the size is faster.
  const Tip falls = tip(1 << 20);
  REQUIRE(falls.twice);
  CHECK(falls.twice->time == forecast(series, Bytes(2 << 20)).time);
  CHECK(falls.twice->algorithm == "tree");
  CHECK_FALSE(tip(16 << 20).twice);
  // The same cluster with its own tables, with tables of equal hardware, and without tables.
  Cluster mine = cluster, unmeasured = cluster;
  mine.calibration->another_machine = false;
  unmeasured.calibration.reset();
  int near = 0, measured = 0;
  for (double size = 1024; size <= 1 << 27; size *= 2) {
    INFO(size);
    const Tip at = tip(size);
    const auto of_curve = curve.rival(Bytes(size));
    REQUIRE(at.rival.has_value() == of_curve.has_value());
    if (!at.rival) continue;
    ++near;
    CHECK(of_curve->algorithm == at.rival->algorithm);
    CHECK(of_curve->protocol == at.rival->protocol);
    CHECK(of_curve->time.s() == Approx(at.rival->time.s()).epsilon(1e-6));
    const Collective chosen = forecast(series, Bytes(size));
    CHECK(at.rival->algorithm != chosen.algorithm);
    const auto interval = [&](const Cluster& on, const std::optional<Rival>& rival) {
      return interval_of(on, Backend::nccl, Op::all_reduce, Bytes(size), setting.group, chosen.time,
                         {chosen.algorithm, chosen.protocol, rival});
    };
    const CalibratedInterval alone = interval(unmeasured, {}),
                             both = interval(unmeasured, at.rival);
    CHECK(both.low.s() == Approx(alone.low.s() * std::min(1.0, at.rival->time / chosen.time)));
    CHECK(both.high.s() == Approx(alone.high.s() * std::max(1.0, at.rival->time / chosen.time)));
    CHECK(both.ground == Ground::none);
    if (interval(mine, {}).calibrated) {
      ++measured;
      CHECK(interval(mine, at.rival).low == interval(mine, {}).low);
      CHECK(interval(mine, at.rival).high == interval(mine, {}).high);
    }
    CHECK(interval(cluster, at.rival).ground == interval(cluster, {}).ground);
  }
  CHECK(near > 2);
  CHECK(near < 18);
  CHECK(measured > 0);
  // There is no rival if the algorithm is given by name, nor over MPI.
  setting.algorithm = "ring";
  CollectiveSeries told = prepare(cluster, setting);
  told.request.size = Bytes(1 << 20);
  CHECK_FALSE(tip_of(told.request, told.machines, told.transport, Duration::seconds(1)).rival);
  CHECK_FALSE(tip_of(told.request, told.machines, told.transport, Duration::seconds(1)).twice);
  setting = {};
  setting.group = {8, 4};
  setting.backend = Backend::mpi_host;
  CollectiveSeries mpi = prepare(cluster, setting);
  mpi.request.size = Bytes(1 << 20);
  CHECK_FALSE(tip_of(mpi.request, mpi.machines, mpi.transport, Duration::seconds(1)).rival);
}

// Protocols outside nccl.protocols serve no collective; messages use them nevertheless.
TEST_CASE("collective forecast: messages may use protocols that collectives may not") {
  const auto by_ll = [](Op op) {
    const Cluster simple = load_cluster("aws-p4d", {});
    CollectiveSetting setting;
    setting.op = op;
    setting.group.ranks = 6;
    setting.protocol = "LL";
    CollectiveSeries series = prepare(simple, setting);
    return forecast(series, Bytes(4096)).protocol;
  };
  CHECK(by_ll(Op::all_to_all) == "LL");
  CHECK(by_ll(Op::send_recv) == "LL");
  CHECK_THROWS_WITH(by_ll(Op::all_gather),
                    Catch::Contains("unknown protocol 'LL' (allowed: Simple)"));
}

TEST_CASE("collective forecast: one rank does not communicate, on any preset") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all}) {
      INFO(name << " " << name_of(op));
      CollectiveSeries series = prepare(cluster, {op, {1, 1}, Backend::nccl, "", ""});
      CHECK(forecast(series, Bytes(64e6)).time == Duration());
    }
  }
}

}  // namespace
}  // namespace lambcast
