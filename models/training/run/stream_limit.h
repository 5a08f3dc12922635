// Limit of NCCL's TCP streams if it is below the rate of a NIC.
//
// Over sockets each channel of NCCL has one stream to the next node, which its proxy thread fills,
// unless NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD sets more (by default 2 x 8 on AWS, 4 x 1 on
// Google Cloud; src/transport/net_socket.cc): `nccl.connections` of a description. A stream is
// limited to `nccl.flow_cap`. The ranks of a ring send to one peer each over two channels per NIC,
// so a faster NIC has no effect on it above a bandwidth of
//
//   channels x connections x flow_cap / nic_efficiency
//
// where nic_efficiency is the share of the NIC's bandwidth that NCCL gets. Trees and exchanges send
// to several peers. The limit is reported, since most descriptions do not state the cap and use a
// typical one.
#pragma once

#include <optional>

#include "models/finding.h"
#include "sim/base/units.h"

namespace lambcast {

struct Cluster;

struct StreamLimit {
  Bandwidth carried;  // rate of all streams together
  Bandwidth nic;      // NIC bandwidth above which a faster NIC carries no more
};

// Returns the limit for a NIC; absent if the streams reach the NIC's rate.
std::optional<StreamLimit> stream_limit(const Cluster& cluster);

// Returns the limit as a note, for a run over `nodes` nodes.
std::optional<Finding> find_stream_limit(const Cluster& cluster, int nodes);

}  // namespace lambcast
