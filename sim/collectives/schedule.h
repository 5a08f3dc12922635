// Collectives as schedules: rounds of sends between ranks, without bandwidths or latencies.
//
// Sizes follow nccl-tests. S is the whole buffer for all_reduce, broadcast, reduce and send_recv
// (every rank sends to the next at once), and n times the block of a rank for all_gather,
// reduce_scatter and all_to_all.
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

// `count` equal sends, from rank from + i to rank to + i.
struct Send {
  static constexpr int own_rail = -1, rail_of_receiver = -2;
  int from;
  int to;
  Bytes bytes;
  int rail = own_rail;       // NIC through which the send leaves the node
  std::uint32_t weight = 1;  // equal sends merged into one
  int count = 1;
};

// How the repetitions of a round follow one another.
//
//   stepwise   a repetition ends before the next begins; the hops are those of one repetition
//   rotating   in each repetition every rank passes on the data of the previous one (a ring), once
//              the first slice has arrived; the hops are those of all repetitions together
//   streaming  a single repetition in which all edges of a chain or tree move data at once, slice
//              by slice; the hops are those of its longest path
enum class Pace { stepwise, rotating, streaming };

struct Round {
  std::size_t sends;       // index into CommSchedule::send_sets
  std::int64_t times = 1;  // consecutive repetitions
  std::int64_t local_hops = 0;
  std::int64_t network_hops = 0;
  std::int64_t messages = 0;  // posted by one rank, in addition to the message of a hop
  Pace pace = Pace::stepwise;
  // Bytes that one lane moves in a repetition, in slices. A lane is a ring or tree of its own: one
  // per NIC between nodes, one per rank within a node.
  Bytes lane_bytes{};
  // Bytes that one rank passes on in a repetition over all channels of NCCL; zero if the round is
  // neither a ring nor a tree.
  Bytes channel_bytes{};
  // If every rank posts a message to every other rank at once, the size of one message; else zero.
  Bytes at_once{};
  // Whether all ranks post to their peers in the same order, so that the last peer receives last
  // from all of them.
  bool same_order = false;
};

// Hop latencies that apply to a schedule (see Protocol). A reduction in the network's switches pays
// the hops of a tree and runs under Simple only.
enum class Latencies { ring, tree, in_switch, in_network };

// Payload bytes sent. The figure per rank is for one group, the figure per node includes the
// siblings.
struct Traffic {
  Bytes sent_per_rank;          // mean over ranks
  Bytes network_sent_per_node;  // mean over nodes, only bytes that leave the node
};

struct CommSchedule {
  Op op = Op::all_reduce;
  Bytes size;
  std::string algorithm;
  Latencies latencies = Latencies::ring;
  // If folded, sends to or from nodes that are not written count half: they load only the links of
  // the written end. Otherwise they return to the image of their receiver (machine.h).
  bool halves = false;
  // The only set is an exchange of every rank with every other rank. One send represents all sends
  // within a node, another one all sends that leave a full node (exchange_loads.h).
  bool everybody = false;
  std::vector<std::vector<Send>> send_sets;
  std::vector<Round> rounds;
  Traffic traffic;
};

// Returns the number of stored sends.
std::size_t sends_in(const std::vector<Send>& sends);
// Returns the number of flows of `send` that leave their node.
int crossings(const Send& send, const Placement& placement);

// Returns the traffic of one group, from the stored sends.
Traffic count_traffic(const CommSchedule& schedule, const Placement& placement);

}  // namespace lambcast
