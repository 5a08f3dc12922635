// Slices, limits of a protocol and reduction in the switch, compared with the equations of
// transport.h.
#include <catch2/catch.hpp>

#include <cmath>

#include "sim/base/error.h"
#include "sim/collectives/collective.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr double us = 1e-6, megabyte = 1e6;

struct Setting {
  int gpus = 1, nics = 1, nodes = 8;
  double link = 1e12, nic = 1e9;
  Transport transport;
};

// Returns a setting with one protocol, with 5 us per hop in the node and 20 us between nodes.
Setting setting(int gpus, int nodes) {
  Setting s;
  s.gpus = s.nics = gpus;
  s.nodes = nodes;
  const HopLatency hop{Duration::microseconds(7), Duration::microseconds(5),
                       Duration::microseconds(20)};
  Protocol simple;
  simple.name = "simple";
  simple.ring = simple.tree = hop;
  s.transport.protocols.push_back(simple);
  return s;
}

Collective plan(const Setting& s, const char* algorithm, Op op, double size, bool fold = true,
                bool expand = false) {
  const NodeSpec node{s.gpus,          s.nics,           Bandwidth(s.link), false,
                      Bandwidth(1e13), Bandwidth(s.nic), Bandwidth(1e10)};
  Machines machines(node, s.nodes, single_switch, fold ? 1 : 0);
  return plan_collective(
      {op, Bytes(size), {s.gpus * s.nodes, s.gpus}, DecisionRules::nccl, algorithm, "", expand},
      machines, s.transport);
}

double seconds(const Setting& s, const char* algorithm, Op op, double size) {
  return plan(s, algorithm, op, size).time.s();
}

TEST_CASE("pipeline: a ring is limited by its link and by a slice on its way around") {
  // Eight nodes with one GPU have 7 steps of S/8, all between nodes. With two slices per step, f =
  // W/2.
  Setting s = setting(1, 8);
  s.transport.slice = Bytes(100 * megabyte);
  s.transport.protocols[0].slices = 2;
  for (const double size : {8e3, 1e6, 8e6, 80e6}) {
    const double w = 7 * size / 8 / 1e9, f = w / 2, l = 7 * 20 * us;
    CHECK(seconds(s, "ring", Op::all_gather, size) ==
          Approx(7 * us + f + std::hypot(w - f, l)).epsilon(1e-7));
  }
  // If transfer and latency differ much, only the larger one counts.
  CHECK(seconds(s, "ring", Op::all_gather, 800 * megabyte) == Approx(7 * 0.1).epsilon(1e-3));
  CHECK(seconds(s, "ring", Op::all_gather, 8) == Approx(147 * us).epsilon(1e-3));
  // With many slices the fill time f is small: S/8 = 100 MB in 100 slices.
  s.transport.slice = Bytes(1 * megabyte);
  const double w = 7 * 0.1, f = w / 100;
  CHECK(seconds(s, "ring", Op::all_gather, 800 * megabyte) ==
        Approx(7 * us + f + std::hypot(w - f, 140 * us)).epsilon(1e-7));
  // With a single uncut slice, latency and transfer add up, as without slices.
  s.transport.slice = Bytes(1e12);
  s.transport.protocols[0].slices = 1;
  CHECK(seconds(s, "ring", Op::all_gather, 8 * megabyte) == Approx(147 * us + 7e-3).epsilon(1e-6));
}

TEST_CASE("pipeline: a tree fills its pipe, then streams") {
  // Two nodes with one GPU have 2 hops. Each edge carries S/2 each way in both trees, so W = S/B.
  // With k slices of S/2, the first slice takes 2 hops of S/2/k.
  Setting s = setting(1, 2);
  s.transport.slice = Bytes(1 * megabyte);
  for (const double size : {1e6, 2e6, 20e6, 200e6}) {
    const double w = size / 1e9, k = std::max(1.0, size / 2 / megabyte), f = 2 * size / 2 / 1e9 / k;
    CHECK(seconds(s, "tree", Op::all_reduce, size) ==
          Approx(7 * us + 40 * us + f + w * (1 - 1 / k)).epsilon(1e-6));
  }
}

TEST_CASE("pipeline: a tree of many nodes fills its pipe with slices of half the payload") {
  // Eight nodes with one GPU: 3 levels up and down are 6 hops, and each tree carries S/2. The first
  // slice of S/2/k takes 6 S/2/k/B over these hops; an inner node's NIC carries 2 S in total. With
  // slices of 1 MB, k = S/2/MB, so that filling the pipe takes (3 - 2) S/B/k = 2 MB/B longer.
  Setting s = setting(1, 8);
  s.transport.slice = Bytes(1 * megabyte);
  for (const double size : {4e6, 20e6, 200e6})
    CHECK(seconds(s, "tree", Op::all_reduce, size) ==
          Approx(7 * us + 6 * 20 * us + 2 * size / 1e9 + 2e6 / 1e9).epsilon(1e-6));
}

TEST_CASE("pipeline: a node's cap below its NICs' rate applies and is shared by them") {
  // Two nodes have 4 GPUs and 4 NICs of 1 GB/s each. The protocol caps a node's 4 GB/s at 1 GB/s of
  // payload.
  Setting s = setting(4, 2);
  for (HopLatency* hop : {&s.transport.protocols[0].ring, &s.transport.protocols[0].tree})
    *hop = {};
  CHECK(seconds(s, "ring", Op::all_gather, 64 * megabyte) == Approx(7. / 8 * 64e6 / 4e9));
  s.transport.protocols[0].node_cap = Bandwidth(1e9);
  CHECK(seconds(s, "ring", Op::all_gather, 64 * megabyte) == Approx(7. / 8 * 64e6 / 1e9));
  s.transport.protocols[0].efficiency = 0.5;  // does not affect the cap, which is in payload
  CHECK(seconds(s, "ring", Op::all_gather, 64 * megabyte) == Approx(7. / 8 * 64e6 / 1e9));
  // The cap of trees is multiplied by their share of it.
  s.transport.protocols[0].tree_efficiency = 0.5;
  CHECK(seconds(s, "tree", Op::all_reduce, 64 * megabyte) == Approx(64e6 / 0.5e9));
  CHECK(seconds(s, "ring", Op::all_gather, 64 * megabyte) == Approx(7. / 8 * 64e6 / 1e9));
}

// Two nodes of 8 GPUs: a ring of 8 GB over 16 channels of 1 GB/s, which is less than the rate of
// its links.
TEST_CASE("pipeline: channels limit a ring, and few bytes use few channels") {
  Setting s = setting(8, 2);
  s.nic = 1e12;
  Protocol& simple = s.transport.protocols[0];
  simple.name = "LL128";
  simple.channel_rate = Bandwidth(1e9);
  s.transport.tuning = NcclTuning{.nics = 8};
  s.transport.slice = Bytes(1e12);
  const double latency = 7 * us + (14 * 5 + 1 * 20) * us;
  // A ring has 15 steps of S/16, over 16 channels or, for 10 KiB, over two. If a block is one
  // slice, f = W.
  for (const auto& [size, channels] : {std::pair{8e9, 16.}, std::pair{10240., 2.}}) {
    INFO(size);
    CHECK(seconds(s, "ring", Op::all_gather, size) ==
          Approx(latency + 15 * size / 16 / (channels * 1e9)).epsilon(1e-3));
    for (const bool fold : {true, false}) {
      const Collective planned = plan(s, "ring", Op::all_gather, size, fold);
      CHECK(simulate(planned, NetworkModel::flow).s() == Approx(planned.time.s()).epsilon(1e-6));
    }
  }
  // A tree passes all of S up and down over eight hops: a chain of seven, and one between nodes.
  CHECK(seconds(s, "tree", Op::all_reduce, 8e9) == Approx(16 * 8e9 / (16 * 1e9)).epsilon(1e-3));
  // Under Simple, channels limit the rate of a hop; the rate of all channels together is that of
  // the NICs.
  simple.name = "Simple";
  CHECK(seconds(s, "tree", Op::all_reduce, 8e9) == Approx(16 * 8e9 / (16 * 1e9)).epsilon(1e-3));
  s.transport.slice = Bytes(1);
  CHECK(seconds(s, "tree", Op::all_reduce, 8e9) < 1);
  // Algorithms other than NCCL's rings and trees are not limited.
  CHECK(seconds(s, "shift", Op::send_recv, 8e9) < 1);
}

TEST_CASE("pipeline: within one node other latencies apply") {
  Setting s = setting(4, 1);
  s.transport.protocols[0].alone =
      HopLatency{Duration::microseconds(3), Duration::microseconds(1), Duration()};
  // An all-reduce over these ranks has 6 steps.
  CHECK(seconds(s, "ring", Op::all_reduce, 4) == Approx(9 * us).epsilon(1e-5));
  s.nodes = 2;
  CHECK(seconds(s, "ring", Op::all_gather, 4) == Approx((7 + 6 * 5 + 20) * us).epsilon(1e-4));
}

TEST_CASE("pipeline: the switch reduces at S (1 + 1/p) each way") {
  Setting s = setting(8, 1);
  s.link = 100e9;
  CHECK_THROWS_WITH(plan(s, "nvls", Op::all_reduce, megabyte),
                    Contains("no protocol of this cluster"));
  s.transport.protocols[0].in_switch =
      InSwitch{{Duration::microseconds(25), Duration(), Duration::microseconds(21)}, 0.8};
  const double S = 800 * megabyte;
  CHECK(seconds(s, "nvls", Op::all_reduce, S) == Approx(25 * us + S * 9 / 8 / 80e9).epsilon(1e-7));
  // NVLS sends less than the ring's 2 * 7/8 S, so it is chosen. Small sizes use the ring with its
  // low base latency.
  CHECK(plan(s, "", Op::all_reduce, S).algorithm == "nvls");
  s.transport.protocols[0].ring = {};
  CHECK(plan(s, "", Op::all_reduce, 8).algorithm == "ring");
  // Four nodes are joined by trees of two levels; an inner node sends 2 S over 8 NICs.
  s.nodes = 4;
  CHECK(seconds(s, "nvls_tree", Op::all_reduce, S) ==
        Approx(25 * us + 4 * 21 * us + 2 * S / 8e9).epsilon(1e-7));
  CHECK(plan(s, "nvls_tree", Op::all_reduce, S).traffic.network_sent_per_node.value() ==
        Approx(2 * 3. / 4 * S));
}

TEST_CASE("pipeline: folded or in full, in one event or many, the time is the same") {
  Setting s = setting(4, 4);
  s.link = 5e9;
  s.transport.slice = Bytes(megabyte);
  s.transport.protocols[0].slices = 2;
  s.transport.protocols[0].node_cap = Bandwidth(3e9);
  s.transport.protocols[0].in_switch = InSwitch{};
  for (const char* algorithm : {"ring", "tree", "nvls_tree"}) {
    for (const double size : {1e4, 1e6, 1e8}) {
      INFO(algorithm << " " << size);
      const Collective folded = plan(s, algorithm, Op::all_reduce, size);
      const Collective full = plan(s, algorithm, Op::all_reduce, size, false, true);
      CHECK(full.time.s() == Approx(folded.time.s()).epsilon(1e-6));
      CHECK(simulate(folded, NetworkModel::analytic).s() == Approx(folded.time.s()).epsilon(1e-6));
      CHECK(simulate(full, NetworkModel::analytic).s() == Approx(folded.time.s()).epsilon(1e-6));
      CHECK(simulate(full, NetworkModel::flow).s() ==
            Approx(simulate(folded, NetworkModel::flow).s()).epsilon(1e-6));
      CHECK(simulate(folded, NetworkModel::flow).s() <= folded.time.s() * (1 + 1e-6));
    }
  }
}

TEST_CASE("pipeline: exposed latency") {
  const Duration ten = Duration::microseconds(10);
  CHECK(exposed(ten, 0, ten) == ten);
  CHECK(exposed(ten, 0.75, Duration::microseconds(0)) == ten);
  // The exposed latency is sqrt(7.5^2 + 10^2) - 7.5 = 5.
  CHECK(exposed(ten, 0.75, ten).us() == Approx(5));
  CHECK(exposed(ten, 1, Duration::seconds(1)).us() < 1e-4);
}

// Returns when the last node has received all its messages, in units of one message's time. Every
// node sends one message to every other in the order of their numbers; ports pass one message at a
// time, first come first served.
int turns_one_by_one(int nodes) {
  int last = 0;
  for (int to = 0; to < nodes; ++to) {
    // Sender i has already sent to the nodes before `to`, except itself: its message arrives at
    // slot `to`, or to - 1.
    int free_at = 0;
    for (const bool earlier : {true, false}) {
      const int senders = earlier ? to : nodes - 1 - to;
      const int slot = earlier ? to - 1 : to;
      for (int i = 0; i < senders; ++i) free_at = std::max(free_at, slot) + 1;
    }
    last = std::max(last, free_at);
  }
  return last;
}

TEST_CASE("turns: if all ranks post in the same order, the last node starts late") {
  const double message = 1e6;  // 1 ms at 1 GB/s
  for (const int nodes : {2, 3, 4, 8, 64}) {
    Setting s = setting(1, nodes);
    const auto time = [&](const char* algorithm) {
      return seconds(s, algorithm, Op::all_to_all, message * nodes);
    };
    const double side_by_side = time("deepspeed_gather");
    CHECK(side_by_side == Approx(27 * us + (nodes - 1) * 1e-3));
    // Whole messages are queued one after another: 2 N - 3 turns.
    s.transport.queue_ahead = Bytes(2 * message);
    CHECK(turns_one_by_one(nodes) == 2 * nodes - 3);
    CHECK(time("deepspeed_gather") == Approx(27 * us + turns_one_by_one(nodes) * 1e-3));
    // If a quarter of each message is queued, only a quarter of the extra wait occurs.
    s.transport.queue_ahead = Bytes(message / 4);
    CHECK(time("deepspeed_gather") == Approx(side_by_side + (nodes - 2) * 0.25e-3));
    // MPI's own linear exchange starts with a different peer on every rank.
    CHECK(time("linear") == Approx(side_by_side));
    // A token bucket that filled meanwhile reduces the wait by up to its size.
    s.transport.burst = Duration::microseconds(100);
    CHECK(time("deepspeed_gather") ==
          Approx(side_by_side + std::max(0.0, (nodes - 2) * 0.25e-3 - 0.1e-3)));
  }
}

TEST_CASE("incast: exchanges wait for the timer if a port holds less than a packet of each flow") {
  CHECK(stalled_share(full_packet * 63, 63) == Approx(0.5));
  // The queue length is normal with mean k and variance 2 k (incast.h), so that a port with room
  // for k + z sqrt(2 k) overflows with the probability above z: 15.87 % for 1, 2.275 % for 2.
  CHECK(stalled_share(full_packet * (50 + 10), 50) == Approx(0.158655).epsilon(1e-5));
  CHECK(stalled_share(full_packet * (50 + 20), 50) == Approx(0.0227501).epsilon(1e-5));
  CHECK(stalled_share(full_packet * (200 - 20), 200) == Approx(1 - 0.158655).epsilon(1e-5));
  CHECK(stalled_share(full_packet * 31, 63) > 0.95);
  CHECK(stalled_share(full_packet * 126, 63) < 0.001);
  CHECK(stalled_share(full_packet * 0.9e6, 1e6) == Approx(1));  // the more flows, the sharper

  Setting s = setting(2, 8);
  s.nics = 1;
  const auto time = [&](const char* algorithm, double message) {
    return seconds(s, algorithm, Op::all_to_all, message * 16);
  };
  const auto lossless = [&](const char* algorithm, double message) {
    s.transport.port_queue.reset();
    return time(algorithm, message);
  };
  const auto waits = [&](const char* algorithm, double message) {
    const double without = lossless(algorithm, message);
    s.transport.port_queue = PortQueue{full_packet * 28, Duration::microseconds(200e3)};
    return (time(algorithm, message) - without) / 0.2;
  };
  // Each of the 2 GPUs of a node receives from 14 ranks over the same port: 28 flows, and half of
  // the exchanges wait.
  CHECK(waits("linear", 1e5) == Approx(0.5));
  CHECK(waits("deepspeed_gather", 1e5) == Approx(0.5));
  CHECK(waits("deepspeed_gather", 5e3) == Approx(0.5));
  // No wait with one sender per receiver at a time, or with messages that need no acknowledgement.
  CHECK(waits("pairwise", 1e5) == 0);
  CHECK(waits("linear", 14e3) == 0);
  CHECK(waits("deepspeed_gather", 2.8e3) == 0);
  // The result is the same rank by rank and event by event.
  const Collective full = plan(s, "linear", Op::all_to_all, 16e5, false, true);
  CHECK(full.time.s() == Approx(time("linear", 1e5)).epsilon(1e-6));
  CHECK(simulate(full, NetworkModel::flow).s() == Approx(full.time.s()).epsilon(1e-6));
  s.transport.connections = 4;
  CHECK(waits("linear", 1e5) > 0.99);
  // Between two nodes the sender is as slow as the port.
  s.nodes = 2;
  CHECK(seconds(s, "linear", Op::all_to_all, 4e5) < 0.1);
}

// Messages of two ranks over two channels have 2 MiB in flight during a hop. Beyond the first 2
// MiB, a message takes one hop latency per 2 MiB; the NIC alone takes 10 ms for 100 MB.
TEST_CASE("pipeline: a message over a long distance waits for its channels' buffers") {
  Setting s = setting(1, 2);
  s.nic = 1e10;
  s.transport.tuning = NcclTuning{};
  const auto message = [&](double hop_us) {
    s.transport.protocols[0].ring.network = Duration::microseconds(hop_us);
    return seconds(s, "shift", Op::send_recv, 100e6) - 7 * us - hop_us * us;
  };
  CHECK(message(20) == Approx(0.01).epsilon(1e-6));
  CHECK(message(1000) == Approx((100e6 / 0x1p21 - 1) * 1e-3).epsilon(1e-6));
  CHECK(message(5000) == Approx((100e6 / 0x1p21 - 1) * 5e-3).epsilon(1e-6));
}

// A tree of two nodes carries S over c channels with 4 MiB each in flight under Simple.
TEST_CASE("pipeline: a tree over a long distance waits for its channels' buffers") {
  Setting s = setting(1, 2);
  s.transport.protocols[0].name = "Simple";
  s.transport.tuning = NcclTuning{};
  s.transport.protocols[0].tree.network = Duration::microseconds(20'000);
  const double size = 1e9, buffers = 2 * 0x1p22, l = 2 * 0.02;
  CHECK(seconds(s, "tree", Op::all_reduce, size) ==
        Approx(7 * us + l + size / buffers * 0.02).epsilon(0.01));
}

// Over TCP each connection of a channel has 3 MiB in flight during a round trip of two hops, so a
// hop passes on 1.5 MiB per connection, up to the 4 MiB of the buffer.
TEST_CASE("pipeline: a tree over a long distance waits for TCP's windows") {
  Setting s = setting(1, 2);
  s.transport.protocols[0].name = "Simple";
  s.transport.tuning = NcclTuning{};
  s.transport.protocols[0].tree.network = Duration::microseconds(20'000);
  const double size = 1e9;
  const auto time_of_flows = [&] {
    return seconds(s, "tree", Op::all_reduce, size) - 7 * us - 2 * 0.02;
  };
  const double by_buffers = time_of_flows();
  s.transport.over_tcp = true;
  CHECK(time_of_flows() == Approx(size / (2 * 1.5 * 0x1p20) * 0.02).epsilon(0.01));
  s.transport.connections = 2;
  CHECK(time_of_flows() == Approx(size / (2 * 3 * 0x1p20) * 0.02).epsilon(0.01));
  s.transport.connections = 4;
  CHECK(time_of_flows() == by_buffers);
}

}  // namespace
}  // namespace lambcast
