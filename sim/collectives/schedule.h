// Collectives as schedules: rounds of sends between ranks, free of any bandwidth or latency value.
//
// Sizes follow nccl-tests: S is the whole buffer for all_reduce, broadcast, reduce and send_recv
// (every rank to the next, all at once), n times the block of a rank for all_gather, reduce_scatter
// and all_to_all.
//
// The rounds of a schedule run one after another; a round ends when its last send has arrived. Two
// kinds of algorithm do not wait for that, see Pace.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/collectives/placement.h"

namespace lambcast {

enum class Op { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send_recv, reduce };
inline constexpr std::size_t op_count = 7;

std::string_view name_of(Op op);
const std::vector<std::string>& op_names();

// `count` sends that are alike, from rank from + i to rank to + i.
struct Send {
  static constexpr int own_rail = -1, rail_of_receiver = -2;
  int from;
  int to;
  Bytes bytes;
  int rail = own_rail;       // the NIC used when it leaves the node
  std::uint32_t weight = 1;  // equal sends merged into one
  int count = 1;
};

// How the repetitions of a round follow one another.
//
//   stepwise   one ends before the next begins; the hops are those of one repetition
//   rotating   every rank passes on in the next repetition what it received in this one (a ring),
//              and may begin when the first slice of it is there; the hops are those of all
//              repetitions together
//   streaming  a single repetition in which all edges of a chain or tree move data at once, slice
//              by slice; the hops are those of its longest path
enum class Pace { stepwise, rotating, streaming };

struct Round {
  std::size_t sends;       // index into CommSchedule::send_sets
  std::int64_t times = 1;  // consecutive repetitions
  std::int64_t local_hops = 0;
  std::int64_t network_hops = 0;
  std::int64_t messages = 0;  // posted by one rank beyond the one that a hop includes
  Pace pace = Pace::stepwise;
  // Bytes that one lane (a ring or tree of its own; one per NIC, within a node one per rank) moves
  // in a repetition, which are cut into slices.
  Bytes lane_bytes{};
  // Bytes that one rank passes on in a repetition over all channels of NCCL; zero: neither a ring
  // nor a tree.
  Bytes channel_bytes{};
  // Size of one message, if every rank posts one to each other at once; else zero.
  Bytes at_once{};
  // Whether all post to the peers in the same order, so that the last of them waits for its turn.
  bool same_order = false;
};

// Latencies that the hops of a schedule cost (see Protocol). A reduction in the network's switches
// costs the hops of a tree, and runs under Simple only.
enum class Latencies { ring, tree, in_switch, in_network };

// Payload bytes that the ranks put on wires, with those of their siblings where nodes are meant.
struct Traffic {
  Bytes sent_per_rank;          // mean over ranks
  Bytes network_sent_per_node;  // mean over nodes, only what leaves the node
};

struct CommSchedule {
  Op op = Op::all_reduce;
  Bytes size;
  std::string algorithm;
  Latencies latencies = Latencies::ring;
  // Folded, sends from and to nodes that are not written are halves: over the links of the end that
  // is. Else they return to the image of their receiver (machine.h).
  bool halves = false;
  // The only set is an exchange in which every rank sends one message to each other: one send
  // stands for those that stay in their node, one for all that leave a full node
  // (exchange_loads.h).
  bool everybody = false;
  std::vector<std::vector<Send>> send_sets;
  std::vector<Round> rounds;
  Traffic traffic;
};

// How many sends are written down.
std::size_t sends_in(const std::vector<Send>& sends);
// How many of those in one leave their node.
int crossings(const Send& send, const Placement& placement);

// The traffic of the sends as written down, of one group.
Traffic count_traffic(const CommSchedule& schedule, const Placement& placement);

}  // namespace lambcast
