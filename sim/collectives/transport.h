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
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

struct HopLatency {
  Duration base;
  Duration local;
  Duration network;
};

struct Protocol {
  std::string name;
  HopLatency ring;  // also used by every algorithm that is no tree
  HopLatency tree;
  double efficiency = 1;                                   // payload bytes per byte on the wire
  Bytes largest{std::numeric_limits<double>::infinity()};  // payload it is offered for
};

// Where the buffers lie that the library moves.
enum class Endpoint { gpu, host };

struct Transport {
  std::vector<Protocol> protocols;
  Duration message_overhead;  // posting and matching one message
  Bandwidth flow_cap;         // of one network flow (a TCP stream); zero: none
  int connections = 1;        // flows opened per pair of peers
  Endpoint endpoint = Endpoint::gpu;
};

}  // namespace lambcast
