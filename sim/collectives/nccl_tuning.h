// NCCL's choice of an algorithm for a collective of a size: the cheapest by its own cost model,
// whose built-in constants do not depend on the network. A fitted cost then gives the time of that
// algorithm here. Restated from src/graph/tuning.cc of NCCL 2.12 to 2.28.
//
//   time = L + S / B      L from hop latencies per algorithm and protocol, B from the rates that
//                         the topology search (src/graph/search.cc) selects from a fixed list of
//                         steps per channel
//
// The result of the search depends on the machine; it is assumed. Within a node it is all links of
// a GPU; between nodes one ring of two channels per NIC, at the highest listed step not above its
// nominal rate. On two nodes a tree counts the rate inside the node, which the search raises to up
// to twice that of the network: each half of the data crosses the network once per direction. CPU
// limits are those of Intel (posting 1 us) or AMD (2 us). A network plugin may report a latency of
// its NICs. It is added to the built-in latency of every hop between nodes, twice under Simple,
// which also flushes received data. NCCL's own plugins report none.
//
// If the network's switches reduce, CollNet's algorithms are available for up to eight GPUs per
// node (from 2.14; the direct one only with an NVSwitch), and so is NVLS over several nodes. An
// all_gather or reduce_scatter over CollNet needs a plugin that supports it, and is left out.
//
// Versions differ in the latency of a tree's hops under Simple (28 us in 2.12 to 2.17 and again in
// 2.19 to 2.22, 14 us or less in 2.18 and from 2.23), in LL's share of the rate (1/4, from 2.21
// 1/2), and in the estimates of NVLSTree (new in 2.28). Versions not listed equal the one before.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

// NCCL's view of the machine.
struct NcclTuning {
  enum class Gpu { volta, ampere, hopper, blackwell };
  static constexpr int oldest = 12, newest = 28;
  static constexpr int most_channels = 64;
  static constexpr int most_of_collnet = 8, first_with_collnet = 14;  // GPUs per node, 2.14
  Gpu gpu = Gpu::ampere;
  int minor = newest;      // minor version of NCCL 2
  double link_GBps = 240;  // rate from one GPU to all others of its node
  int gpus_per_node = 8;   // number of GPUs in a whole node
  bool mesh = false;       // a GPU reaches each other GPU over an equal share of its links
  bool nvlink = true;
  bool in_switch = false;                       // NVLS is available
  bool amd = false;                             // AMD CPU
  int nics = 1;                                 // number of NICs in a whole node
  double nic_GBps = 25;                         // nominal rate of each NIC
  Duration nic_latency{};                       // latency that a network plugin reports
  bool ll = true, ll128 = true, simple = true;  // allowed protocols (NCCL_PROTO)
  bool sharp = false;  // the network's switches reduce (NCCL_COLLNET_ENABLE)
  // Algorithms that an all_reduce may use (NCCL_ALGO). Operations with only one algorithm, such as
  // all_gather with the ring, are not restricted.
  bool ring = true, tree = true, nvls = true, nvls_tree = true, collnet_direct = true,
       collnet_chain = true;
  int min_ctas = 1, max_ctas = most_channels;  // NCCL_MIN_CTAS, NCCL_MAX_CTAS (.._NCHANNELS)
  // Threads per channel; zero: NCCL's default (NCCL_NTHREADS for LL and Simple,
  // NCCL_LL128_NTHREADS).
  int threads = 0, ll128_threads = 0;
  // NCCL_TREE_THRESHOLD of 2.4: smaller all-reduces use the tree, others the ring, regardless of
  // cost. Zero: choice by cost.
  Bytes tree_threshold{};
  bool operator==(const NcclTuning&) const = default;
};

// Numbers of channels over several nodes: two per NIC in use, within the configured limits.
struct NcclChannels {
  int standard = 0, used = 0;
};
NcclChannels nccl_channels(const NcclTuning& tuning, int gpus_per_node);

// Returns the number of channels that share a lane, a ring's path through one NIC. Each channel has
// network connections of its own.
double nccl_channels_of_a_lane(const NcclTuning& tuning, int gpus_per_node);

// Returns the number of channels over which a ring or tree of a size is spread. It is at least one,
// and each channel gets at least a given number of bytes per thread (src/enqueue.cc and
// src/graph/tuning.cc, the same in 2.12 to 2.28).
//
//   LL      8 B for 512 threads, in a ring times its ranks
//   LL128   8 B for 640 threads
//   Simple  64 B for 512 threads, or 256 in rings over PCIe of generation 3
int nccl_channels_for(const NcclTuning& tuning, std::string_view protocol, bool ring, Bytes size,
                      int nodes, int gpus_per_node);

// Returns the number of chunks of an all-reduce of S bytes in the NVLink switch (NVLS, NVLSTree): S
// / chunk (src/enqueue.cc of 2.27 and 2.28). With w = channels x heads, where heads are up to 32
// GPUs of the node, the chunk grows with S:
//
//   chunk       16 KiB     32 KiB            64 KiB            128 KiB
//   one node    from 0     from 2 w 32 KiB   from 8 w 64 KiB   from 64 w 128 KiB
//   several                from 0            from w 64 KiB     from 4 w 128 KiB, up to 3 nodes
double nvls_chunks(const NcclTuning& tuning, Bytes size, int nodes, int gpus_per_node);

// Returns the first minor version that makes the same choices as this one.
int nccl_choices_since(int minor, bool in_switch);

// Returns whether NCCL selects another listed speed if the NICs' nominal rate is `factor` times its
// value.
bool lists_other_speed(const NcclTuning& tuning, int gpus_per_node, double factor);

struct NcclChoice {
  std::string_view algorithm;  // a name from algorithm_names()
  Duration time;               // NCCL's own estimate
};

// Returns NCCL's algorithms for the operation, each with its best protocol, cheapest first. The
// list is empty for all_to_all and send_recv, which the model leaves out, and if no algorithm is
// allowed.
std::vector<NcclChoice> nccl_choices(const NcclTuning& tuning, Op op, Bytes size, int nodes,
                                     int gpus_per_node);

}  // namespace lambcast
