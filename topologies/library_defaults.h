// Protocol constants of the communication libraries, used where a cluster file does not override
// them. NCCL's are its own tuning constants (src/graph/tuning.cc, identical in 2.28 and 2.30): base
// latency and hardware latency per hop over NVLink, PCIe and an RDMA network, for LL, LL128 and
// Simple. Over TCP sockets the network hop also holds the proxy thread's wake-ups: two-rank
// all-reduces of up to 2 KB took 51 to 110 us in public logs, two hops each.
#pragma once

#include <vector>

#include "topologies/cluster.h"

namespace lambcast {

enum class NetworkKind { rdma, socket };

std::vector<ProtocolSpec> nccl_protocols(NetworkKind network, bool pcie_peers);
std::vector<ProtocolSpec> mpi_protocols(NetworkKind network);

}  // namespace lambcast
