// The algorithms of NCCL, Open MPI and DeepSpeed as pure functions from operation, bytes and
// placement to rounds. n ranks on N nodes, p ranks per node, S as in schedule.h, alpha the latency
// of a hop, B the bandwidth of a link:
//
//   ring                all_reduce 2(n-1) rounds of S/n: 2(n-1)(alpha + S/(nB)) on an ideal switch;
//                       all_gather and reduce_scatter n-1 rounds; broadcast and reduce a
//                       pipelined chain (NCCL src/device/{broadcast,reduce}.h). One
//                       ring per NIC; a message leaves its node 2(N-1) times, so only that many
//                       rounds pay a network hop (NCCL src/graph/tuning.cc, src/graph/rings.cc).
//   tree                all_reduce: double binary tree over nodes, chain inside a node, each tree
//                       half of S up and down: 2 log2(N) network hops; an inner node moves 2S each
//                       way, on two nodes only S (Sanders, Speck, Traeff 2009; NCCL
//                       src/graph/trees.cc).
//   nvls                all_reduce in one node: its NVLink switch reduces and broadcasts,
//                       S (1 + 1/p) each way per rank (NCCL src/transport/nvls.cc), if the
//                       transport supports it. Over several nodes the network's switches add the
//                       node sums and return the total (SHARP): S leaves and enters each node once.
//   nvls_tree           nvls in each node, and the trees above between nodes (NVLSTree).
//   collnet_direct      all_reduce over such network switches; the GPUs of a node scatter and
//                       gather among themselves: S 2(p-1)/p each way per GPU, S out of and into a
//                       node (NCCL src/device/all_reduce.h).
//   collnet_chain       the same with a chain inside a node, S up and S down each edge of it.
//   hierarchical        all_reduce: reduce-scatter in the node, ring between nodes per local rank,
//                       all-gather in the node, all three pipelined in chunks:
//                       S 2(N-1)/N leaves a node.
//   recursive_doubling  all_reduce log2(n) rounds of S; all_gather rounds of S/n, 2S/n, ...
//   halving_doubling    all_reduce: recursive halving reduce-scatter, recursive doubling all-gather
//                       (Rabenseifner); reduce_scatter: the first half of it.
//   neighbor_exchange   all_gather, even n: n/2 rounds of two blocks with alternating neighbours
//                       (Chen and Yuan 2005; Open MPI coll_base_allgather.c).
//   pairwise            all_to_all: n-1 rounds, in round k every rank sends S/n to rank + k.
//   linear              all_to_all: everything posted at once, n-1 messages per rank.
//   bruck               all_to_all: ceil(log2 n) rounds of about S/2; all_gather: as many rounds of
//                       S/n, 2S/n, ... and the remainder, for any n (Bruck et al. 1997; Open MPI
//                       coll_base_{alltoall,allgather}.c).
//   deepspeed_gather    all_to_all as deepspeed/runtime/comm/mpi.py writes it: for every root all
//                       others send their chunk and then their 4-byte scale, one wait for
//                       everything: linear with 4(n-1) requests per rank.
//   binomial            broadcast and reduce: ceil(log2 n) rounds of S, from the root down for
//                       broadcast, up to the root for reduce (Open MPI coll_base_{bcast,reduce}.c).
//   shift               send_recv: one round, every rank sends S to the next.
#pragma once

#include <bit>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/collectives/schedule.h"

namespace lambcast {

inline bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }

// Returns the names above, in that order.
const std::vector<std::string>& algorithm_names();

// Returns the names of the algorithms that implement the operation at some number of ranks.
std::vector<std::string> algorithms_of(Op op);

// Returns whether the algorithm implements the operation at this number of ranks.
bool supports(std::string_view algorithm, Op op, const ProcessGroup& group);

// Returns whether the algorithm needs network switches that reduce.
bool in_network(std::string_view algorithm, const ProcessGroup& group);

// Returns the largest number of parts, of `nodes_alike` nodes each, that a folded machine writes
// out to stand for all parts. It is one if all parts do the same; for trees it is the number of
// busiest kinds (double_tree.h). The last part may be smaller than the others, unless ranks at a
// distance exchange. Returns zero if the group cannot be folded.
int parts_written(std::string_view algorithm, const ProcessGroup& group, int nodes_alike);

// Throws Error (usage) if the algorithm does not support the operation. One rank gives a schedule
// without rounds.
CommSchedule make_schedule(std::string_view algorithm, Op op, Bytes size,
                           const Placement& placement);

}  // namespace lambcast
