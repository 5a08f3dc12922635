// Protocol constants of the communication libraries, used unless a cluster file overrides them.
// NCCL's are its own tuning constants (src/graph/tuning.cc, identical in 2.28 and 2.30): base
// latency and hardware latency per hop over NVLink, PCIe and an RDMA network, for LL, LL128 and
// Simple. Over TCP sockets the network hop includes the wake-ups of the proxy thread: two-rank
// all-reduces of up to 2 KB took 51 to 110 us in public logs, two hops each. Real fabrics are
// nearly always slower than these constants: each constant is multiplied by its prior (priors.h).
#pragma once

#include <vector>

#include "topologies/cluster.h"

namespace lambcast {

std::vector<ProtocolSpec> nccl_protocols(NetworkKind network, bool pcie_peers,
                                         const Priors& priors);
std::vector<ProtocolSpec> mpi_protocols(NetworkKind network);

// Returns the rate at which one MPI process of a node passes messages to another process of that
// node, through shared memory. Over TCP no driver maps the memory of one process into another, and
// all processes share the copy rate of the memory.
Sourced<Bandwidth> copies_of_process(NetworkKind network, int processes);

// Returns the number of bytes that the host queues for one MPI connection before the next
// connection gets a turn (transport.h). Over TCP, Linux lets a socket hold two packets below it, or
// the bytes of 1 ms if that is more (net/ipv4/tcp_output.c, tcp_small_queue_check). The default of
// two packets is an assumption: a connection with a fast link of its own holds more. Calibration
// fits it to tables of DeepSpeed's exchange.
Sourced<Bytes> queue_ahead(NetworkKind network);

}  // namespace lambcast
