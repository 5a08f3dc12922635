// What it costs to move messages with one communication library over one fabric, beside the bytes.
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
//                                                        about max(W, L + f), whichever paces it:
//                                                        the slowest link, or a slice on its way
//                                                        around; where they are alike, each stalls
//                                                        the other at times
//   tree and chain   time = base + L + f + W (1 - 1/k)   the first slice arrives, the rest follows
//
// Without a slice size (`slice` zero) a ring pays L + W and a tree L + W: no pipelining and no
// filling of the pipe. The mid-size plateau of NCCL's busbw curves, which its own model corrects by
// a factor of 1.4 and a table, comes out of this.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

struct HopLatency {
  Duration base;
  Duration local;
  Duration network;
};

// Reduction inside the NVLink switch (NVLS): its latencies, and its share of the link.
struct InSwitch {
  HopLatency hop;
  double efficiency = 1;
};

struct Protocol {
  std::string name;
  HopLatency ring;  // also used by every algorithm that is no tree
  HopLatency tree;
  double efficiency = 1;                                   // payload bytes per byte on the wire
  Bytes largest{std::numeric_limits<double>::infinity()};  // payload it is offered for
  // Inside one node, where no proxy thread stands beside the kernel; absent: as `ring`. Its network
  // hop is not used.
  std::optional<HopLatency> alone{};
  double tree_efficiency = 1;  // of trees between nodes, on top of efficiency
  Bandwidth node_cap{};        // payload out of one node; zero: none
  int slices = 1;              // least number a ring's block is cut into
  std::optional<InSwitch> in_switch{};
};

// Where the buffers lie that the library moves.
enum class Endpoint { gpu, host };

struct Transport {
  std::vector<Protocol> protocols;
  Duration message_overhead;  // posting and matching one message
  Bandwidth flow_cap;         // of one network flow (a TCP stream); zero: none
  int connections = 1;        // flows opened per pair of peers
  Endpoint endpoint = Endpoint::gpu;
  Bytes slice{};  // what one lane passes on at once; zero: slices are not modelled
};

}  // namespace lambcast
