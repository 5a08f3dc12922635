// What NCCL's TCP streams carry where a NIC could carry more.
//
// Over sockets each channel of NCCL has a stream to the next node that its proxy thread fills,
// unless NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD asks for more (by default 2 x 8 on AWS, 4 x 1
// on Google Cloud; src/transport/net_socket.cc): `nccl.connections` of a description. A stream
// stops at `nccl.flow_cap`, so to a ring, whose ranks send to one peer each over two channels a
// NIC, a faster NIC is without effect beyond
//
//   channels x connections x flow_cap / nic_efficiency
//
// of the NIC's own bandwidth, of which NCCL gets a share. Trees and exchanges send to several. That
// has to be said, since most descriptions do not know the cap and take what is typical.
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

// Of a NIC; nothing where its rate is reached.
std::optional<StreamLimit> stream_limit(const Cluster& cluster);

// The same as a note, for a run over so many nodes.
std::optional<Finding> find_stream_limit(const Cluster& cluster, int nodes);

}  // namespace lambcast
