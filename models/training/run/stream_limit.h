// Limit of NCCL's TCP streams below the rate of a NIC.
//
// Over sockets each channel of NCCL has one stream to the next node, which its proxy thread fills,
// unless NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD sets more (by default 2 x 8 on AWS, 4 x 1 on
// Google Cloud; src/transport/net_socket.cc): `nccl.connections` of a description. A stream is
// limited to `nccl.flow_cap`. The ranks of a ring send to one peer each over two channels a NIC, so
// a faster NIC has no effect on it beyond
//
//   channels x connections x flow_cap / nic_efficiency
//
// of the NIC's own bandwidth, of which NCCL gets a share. Trees and exchanges send to several
// peers. The limit is reported, since most descriptions do not state the cap and use a typical one.
#pragma once

#include <optional>

#include "models/finding.h"
#include "sim/base/units.h"

namespace lambcast {

struct Cluster;

struct StreamLimit {
  Bandwidth carried;  // by the streams
  Bandwidth nic;      // the NIC of which NCCL gets as much: a faster one carries no more
};

// Returns the limit for a NIC; absent if the NIC's rate is reached.
std::optional<StreamLimit> stream_limit(const Cluster& cluster);

// The same as a note, for a run over `nodes` nodes.
std::optional<Finding> find_stream_limit(const Cluster& cluster, int nodes);

}  // namespace lambcast
