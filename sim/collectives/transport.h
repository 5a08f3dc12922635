// Time of moving messages with one communication library over one fabric.
//
// NCCL's own model (src/graph/tuning.cc) has this shape, and we keep it for all libraries:
//
//   time = base + local_hops * local + network_hops * network + messages * overhead
//        + bytes / (efficiency * bandwidth)
//
// where the hops are those a message makes one after another in the algorithm at hand, and the
// bandwidth comes from the topology, not from here. A library offers several protocols that trade
// latency for bandwidth (NCCL: LL, LL128, Simple; MPI: eager, rendezvous); the cheapest one for the
// size at hand is used, as the libraries do.
//
// Libraries cut data into slices so that a hop may begin before the one before it has ended. With L
// the sum of all hop latencies, W the time of the busiest link for all bytes, k slices, and f the
// time one slice takes over all hops in a row:
//
//   ring             time = base + f + sqrt((W - f)^2 + L^2)
//                    about max(W, L + f): the pace is set by the slowest link, or by a slice on its
//                    way around; if both are alike, each stalls the other at times
//   tree and chain   time = base + L + f + W (1 - 1/k)   the first slice arrives, the rest follows
//
// Without a slice size (`slice` zero) trees and MPI's rings pay L + W; a ring of NCCL passes blocks
// on whole, k = 1. The mid-size plateau of NCCL's busbw curves, which its own model corrects by
// a factor of 1.4 and a table, comes out of this.
//
// NCCL moves a ring or tree with channels, thread blocks of which each has its own share of the
// data, and takes the fewer the less there is to move (nccl_channels_for in nccl_tuning.h). With c
// of them for this size, each passing r on, and B bytes for a rank to pass on
//
//   W >= B / (c r)  of LL and LL128,   f >= hops B / (c r)
//
// so that a hop of LL or LL128 soon costs the time of a channel's share, which stays constant while
// more bytes bring more channels. Between nodes a channel's buffer bounds W too (channel_bounds.h).
// The rate of all of Simple's channels together is that of the NICs and links; within a node there
// are enough channels to fill the links.
//
// An all-reduce in the NVLink switch waits for each of its chunks in turn, over several nodes while
// its NICs are busy:
//
//   time = base + L + max(time of the NICs, S (1 + 1/p) / rate + chunks(S) * chunk)
//
// A rank that posts many messages at once does not send them all side by side: its host queues the
// first q bytes of a message before the next one gets a turn. Where all ranks post in the same
// order (DeepSpeed's exchange over MPI: to rank 0, then 1, ...), they all fill the link into one
// node after the other, and the last node idles until its turn has come. Over N nodes, messages of
// m bytes that take W when all links are busy all the time end after
//
//   same order       time = W + max(0, W (N-2)/(N-1) min(1, q / m) - b / B)
//
// With q >= m that is the 2N - 3 turns of m bytes that pass until N - 1 messages have reached the
// last node, in place of N - 1. A port that is shaped to its rate B by a token bucket of b bytes
// fills it while it idles, and then lets as much pass unpaid. Over TCP, q is what the kernel lets
// one socket queue below it (Linux, net/ipv4/tcp_output.c, tcp_small_queue_check); an RDMA NIC
// serves its queues in turn, q = 0.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/backend.h"
#include "sim/collectives/incast.h"
#include "sim/collectives/nccl_tuning.h"

namespace lambcast {

struct HopLatency {
  Duration base;
  Duration local;
  Duration network;
};

// Reduction inside the NVLink switch (NVLS): its latencies, its share of the link, and the time
// that each chunk of the data adds (nvls_chunks in nccl_tuning.h).
struct InSwitch {
  HopLatency hop;
  double efficiency = 1;
  Duration chunk{};
};

struct Protocol {
  std::string name;
  HopLatency ring;  // also used by every algorithm that is no tree
  HopLatency tree;
  double efficiency = 1;                                   // payload bytes per byte on the wire
  Bytes largest{std::numeric_limits<double>::infinity()};  // payload it is offered for
  // Latencies inside one node, where no proxy thread serves the kernel; absent: as `ring`. Its
  // network hop is not used.
  std::optional<HopLatency> alone{};
  double tree_efficiency = 1;  // of trees between nodes, on top of efficiency
  Bandwidth node_cap{};        // payload out of one node; zero: none
  int slices = 1;              // least number a ring's block is cut into
  Bandwidth channel_rate{};    // r above, payload; zero: channels bound nothing
  std::optional<InSwitch> in_switch{};
};

// Algorithms whose costs tables determined, of sizes below an end.
struct MeasuredAlgorithms {
  Bytes below;
  std::vector<std::string> names;
  bool operator==(const MeasuredAlgorithms&) const = default;
};

struct Transport {
  std::vector<Protocol> protocols;
  Duration message_overhead;  // posting and matching one message
  Bandwidth flow_cap;         // of one network flow (a TCP stream); zero: none
  int connections = 1;        // flows opened per pair of peers, by NCCL for every channel
  Endpoint endpoint = Endpoint::gpu;
  Bytes queue_ahead{};                    // q above; zero: messages are sent side by side
  Duration burst{};                       // b / B above; zero: ports are not shaped
  std::optional<PortQueue> port_queue{};  // absent: nothing is lost
  std::optional<NcclTuning> tuning{};     // by which NCCL chooses; absent: the cheapest
  // Further protocols, for messages between two ranks only: NCCL_PROTO restricts collectives.
  std::vector<Protocol> of_messages{};
  bool pxn = false;  // as Placement::by_rail_of_receiver
  // Further shares of the rate between nodes: of all_to_alls, and of trees over two nodes.
  double all_to_all_efficiency = 1, two_node_tree_efficiency = 1;
  // By size, the last open; empty: no table measured any. An unmeasured algorithm that NCCL takes
  // costs no more than a measured ring: NCCL's rule found it cheaper, and a prior does not outweigh
  // a measurement.
  std::vector<MeasuredAlgorithms> measured{};
  // Bytes that one lane of a ring passes on at once (a quarter for NCCL's trees); zero: slices are
  // not modelled.
  Bytes slice{};
};

}  // namespace lambcast
