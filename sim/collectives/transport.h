// Time of moving messages with one communication library over one fabric.
//
// NCCL's own model (src/graph/tuning.cc) has this shape, and we keep it for all libraries:
//
//   time = base + local_hops * local + network_hops * network + messages * overhead
//        + bytes / (efficiency * bandwidth)
//
// where the hops are those that a message makes in sequence in the algorithm, and the bandwidth
// comes from the topology. A library offers several protocols that trade latency for bandwidth
// (NCCL: LL, LL128, Simple; MPI: eager, rendezvous); the cheapest one at the size is used, as in
// the libraries.
//
// Libraries cut data into slices so that a hop may begin before the previous one has ended. With L
// the sum of all hop latencies, W the time of the busiest link for all bytes, k slices, and f the
// time of one slice over all hops in sequence:
//
//   ring             time = base + f + sqrt((W - f)^2 + L^2)
//                    about max(W, L + f): limited by the slowest link, or by a slice on its way
//                    around; if both are about equal, each stalls the other at times
//   tree and chain   time = base + L + f + W (1 - 1/k)   the first slice arrives, the others follow
//
// Without a slice size (`slice` zero) trees and MPI's rings pay L + W; a ring of NCCL passes on
// whole blocks, k = 1. These equations reproduce the plateau of NCCL's busbw curves at medium
// sizes, which NCCL's own model corrects by a factor of 1.4 and a table.
//
// NCCL runs a ring or tree on channels: thread blocks, each with its own share of the data. Fewer
// channels are used for less data (nccl_channels_for in nccl_tuning.h). With c channels for this
// size, each passing on r bytes per second, and B bytes for a rank to pass on
//
//   W >= B / (c r)  for LL and LL128,   f >= hops B / (c r)
//
// so that a hop of LL or LL128 takes at least the time of a channel's share, which stays constant
// while more bytes use more channels. Between nodes a channel's buffer bounds W too
// (channel_bounds.h). The rate of all of Simple's channels together is that of the NICs and links;
// within a node there are enough channels to fill the links.
//
// An all-reduce in the NVLink switch waits for each of its chunks in turn, over several nodes while
// its NICs are busy:
//
//   time = base + L + max(time of the NICs, S (1 + 1/p) / rate + chunks(S) * chunk)
//
// A rank that posts many messages at once does not send them in parallel: its host queues the first
// q bytes of a message before the next message gets a turn. If all ranks post in the same order
// (DeepSpeed's exchange over MPI: to rank 0, then 1, ...), they fill the link into one node after
// the other, and the last node idles until its turn. Over N nodes, messages of m bytes that take W
// when all links are busy all the time end after
//
//   same order       time = W + max(0, W (N-2)/(N-1) min(1, q / m) - b / B)
//
// With q >= m these are the 2N - 3 turns of m bytes until N - 1 messages have reached the last
// node, instead of N - 1. A port that a token bucket of b bytes shapes to its rate B fills the
// bucket while it idles, and then passes b bytes without delay. Over TCP, q is the amount that the
// kernel lets one socket queue below it (Linux, net/ipv4/tcp_output.c, tcp_small_queue_check); an
// RDMA NIC serves its queues in turn, q = 0.
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

// Reduction inside the NVLink switch (NVLS): its latencies, its share of the link, and the
// additional time of each chunk (nvls_chunks in nccl_tuning.h).
struct InSwitch {
  HopLatency hop;
  double efficiency = 1;
  Duration chunk{};
};

struct Protocol {
  std::string name;
  HopLatency ring;  // used by rings and all other algorithms except trees
  HopLatency tree;
  double efficiency = 1;                                   // payload bytes per byte on the wire
  Bytes largest{std::numeric_limits<double>::infinity()};  // largest payload that may use it
  // Latencies inside one node, where no proxy thread is involved; absent: those of `ring`. Its
  // network hop is not used.
  std::optional<HopLatency> alone{};
  double tree_efficiency = 1;  // factor on `efficiency` for trees between nodes
  Bandwidth node_cap{};        // payload rate out of a node; zero: no cap
  int slices = 1;              // minimum number of slices of a ring's block
  Bandwidth channel_rate{};    // r above, payload; zero: channels are no limit
  std::optional<InSwitch> in_switch{};
};

// Algorithms whose costs were measured, for sizes below `below`.
struct MeasuredAlgorithms {
  Bytes below;
  std::vector<std::string> names;
  bool operator==(const MeasuredAlgorithms&) const = default;
};

struct Transport {
  std::vector<Protocol> protocols;
  Duration message_overhead;  // posting and matching one message
  Bandwidth flow_cap;         // cap of one network flow (a TCP stream); zero: no cap
  int connections = 1;        // flows per pair of peers; with NCCL, per channel
  Endpoint endpoint = Endpoint::gpu;
  Bytes queue_ahead{};                    // q above; zero: messages are sent in parallel
  Duration burst{};                       // b / B above; zero: ports are not shaped
  std::optional<PortQueue> port_queue{};  // absent: no packets are lost
  std::optional<NcclTuning> tuning{};     // NCCL's choice of algorithms; absent: the cheapest one
  // Additional protocols for messages between two ranks only: NCCL_PROTO restricts collectives.
  std::vector<Protocol> of_messages{};
  bool pxn = false;  // see Placement::by_rail_of_receiver
  // Factors on the rate between nodes: for all_to_alls, and for trees over two nodes.
  double all_to_all_efficiency = 1, two_node_tree_efficiency = 1;
  // Measured algorithms in order of size, the last band without an end; empty: no table measured
  // any. An unmeasured algorithm that NCCL chooses is priced at most like a measured ring: NCCL's
  // rule rated it cheaper, and a prior does not outweigh a measurement.
  std::vector<MeasuredAlgorithms> measured{};
  // Bytes that one ring through a NIC passes on at once (a quarter of that for NCCL's trees). Zero:
  // slices are not modelled.
  Bytes slice{};
  bool over_tcp = false;  // whether flows are TCP connections
};

}  // namespace lambcast
