// NCCL's choice of an algorithm for a collective of a size: the cheapest by its own cost model,
// whose built-in constants do not depend on the network. A fitted cost then gives the time of that
// algorithm here. Restated from src/graph/tuning.cc of NCCL 2.12 to 2.28.
//
//   time = L + S / B      L from hop latencies per algorithm and protocol, B from the rates that
//                         the topology search (src/graph/search.cc) settles on, from a fixed list
//                         of steps per channel
//
// The result of the search depends on the machine; it is assumed. Within a node it is all links of
// a GPU; between nodes one ring of two channels per NIC, at the next listed step below its name
// plate. On two nodes a tree counts the rate inside the node, which the search lets grow to twice
// that of the network: each half of the data crosses the network once per direction. CPU limits are
// those of Intel (posting 1 us) or AMD (2 us). A network plugin may report a latency of its NICs.
// Every hop between nodes adds it to the built-in one, twice under Simple, whose data is flushed
// too. NCCL's own plugins report none.
//
// If the network's switches reduce, CollNet's algorithms join, for up to eight GPUs a node (from
// 2.14; the direct one only under an NVSwitch), and so does NVLS over several nodes. An all_gather
// or reduce_scatter over CollNet needs a plugin that has them, and is left out.
//
// Versions differ in the latency of a tree's hops under Simple (28 us in 2.12 to 2.17 and again in
// 2.19 to 2.22, 14 us or less in 2.18 and from 2.23), the share LL gets (1/4, from 2.21 1/2), and
// how NVLSTree is rated (2.28 anew); a version stands for all up to the next.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

// The machine as NCCL takes it.
struct NcclTuning {
  enum class Gpu { volta, ampere, hopper, blackwell };
  static constexpr int oldest = 12, newest = 28;
  static constexpr int most_channels = 64;
  static constexpr int most_of_collnet = 8, first_with_collnet = 14;  // GPUs a node, minor version
  Gpu gpu = Gpu::ampere;
  int minor = newest;      // of version 2
  double link_GBps = 240;  // of one GPU to all others of a node
  int gpus_per_node = 8;   // of the whole node
  bool mesh = false;       // a GPU reaches each other over an equal share of its links
  bool nvlink = true;
  bool in_switch = false;                       // NVLS
  bool amd = false;                             // CPU
  int nics = 1;                                 // of the whole node
  double nic_GBps = 25;                         // name plate of each
  Duration nic_latency{};                       // as a network plugin reports it
  bool ll = true, ll128 = true, simple = true;  // protocols that may be used (NCCL_PROTO)
  bool sharp = false;  // the network's switches reduce (NCCL_COLLNET_ENABLE)
  // Algorithms that an all_reduce may use (NCCL_ALGO). What has one alone, as an all_gather has the
  // ring, keeps it.
  bool ring = true, tree = true, nvls = true, nvls_tree = true, collnet_direct = true,
       collnet_chain = true;
  int min_ctas = 1, max_ctas = most_channels;  // NCCL_MIN_CTAS, NCCL_MAX_CTAS (.._NCHANNELS)
  // Threads of a channel; zero: NCCL's own (NCCL_NTHREADS of LL and Simple, NCCL_LL128_NTHREADS).
  int threads = 0, ll128_threads = 0;
  // All-reduces below it take the tree, others the ring, at any cost: NCCL_TREE_THRESHOLD of 2.4.
  // Zero: by cost.
  Bytes tree_threshold{};
  bool operator==(const NcclTuning&) const = default;
};

// Channels over several nodes: two for each NIC in use, or as many as the limits leave.
struct NcclChannels {
  int standard = 0, used = 0;
};
NcclChannels nccl_channels(const NcclTuning& tuning, int gpus_per_node);

// Channels that share a lane, a ring's way through one NIC: each has network connections of its
// own.
double nccl_channels_of_a_lane(const NcclTuning& tuning, int gpus_per_node);

// Returns the number of channels that a ring or tree of a size is spread over: at least one, and
// only as many as get their share, a number of bytes for every thread (src/enqueue.cc and
// src/graph/tuning.cc, alike in 2.12 to 2.28).
//
//   LL      8 B for 512 threads, in a ring times its ranks
//   LL128   8 B for 640
//   Simple  64 B for 512, or 256 in rings over PCIe of generation 3
int nccl_channels_for(const NcclTuning& tuning, std::string_view protocol, bool ring, Bytes size,
                      int nodes, int gpus_per_node);

// Returns how many chunks an all-reduce of S bytes in the NVLink switch (NVLS, NVLSTree) is cut
// into: S / chunk (src/enqueue.cc of 2.27 and 2.28). With w = channels x heads, of which there are
// up to 32 GPUs of the node, the chunk grows with S:
//
//   chunk       16 KiB     32 KiB            64 KiB            128 KiB
//   one node    from 0     from 2 w 32 KiB   from 8 w 64 KiB   from 64 w 128 KiB
//   several                from 0            from w 64 KiB     from 4 w 128 KiB, up to 3 nodes
double nvls_chunks(const NcclTuning& tuning, Bytes size, int nodes, int gpus_per_node);

// The first minor version that chooses as this one does.
int nccl_choices_since(int minor, bool in_switch);

// Whether NCCL rounds the NICs' name plate down to another of its listed speeds when the plate is
// `factor` times its own.
bool lists_other_speed(const NcclTuning& tuning, int gpus_per_node, double factor);

struct NcclChoice {
  std::string_view algorithm;  // as algorithm_names()
  Duration time;               // what NCCL itself expects
};

// The best over protocols of every algorithm that NCCL has for the operation, cheapest first. Empty
// for all_to_all and send_recv, which its model leaves out, and where no algorithm is allowed.
std::vector<NcclChoice> nccl_choices(const NcclTuning& tuning, Op op, Bytes size, int nodes,
                                     int gpus_per_node);

}  // namespace lambcast
