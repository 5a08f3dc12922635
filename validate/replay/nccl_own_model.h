// NCCL's own cost model with its built-in constants (src/graph/tuning.cc, 2.28 and 2.30), as a
// yardstick: a calibrated forecast has to beat it. Used for nothing else.
//
//   time = L + S / B      L from hop latencies per algorithm and protocol, B from the rates that
//   the
//                         topology search settles on, from a fixed list of steps per channel
//
// What the search finds depends on the machine; it is taken here as: within a node all links of a
// GPU, between nodes one ring per NIC at the next listed step below its name plate, two channels
// per ring. CPU limits are those of Intel (o_net 1 us) or AMD (2 us).
#pragma once

#include "topologies/cluster.h"

namespace lambcast {

struct NcclOwnMachine {
  enum class Generation { volta, ampere, hopper };
  Generation generation = Generation::ampere;
  int nodes = 1;
  int gpus_per_node = 1;
  int nics = 1;            // in use, of a node
  double link_GBps = 240;  // of one GPU to all others in use
  double nic_GBps = 24;    // listed step
  bool nvlink = true;
  bool amd = false;
};

NcclOwnMachine nccl_own_machine(const Cluster& cluster, int nodes, int gpus_per_node);

// The time NCCL expects of its best algorithm and protocol. Not for all_to_all, which its model
// leaves out.
Duration nccl_own_time(const NcclOwnMachine& machine, Op op, Bytes size);

}  // namespace lambcast
