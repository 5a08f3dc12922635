#include "sim/collectives/lower.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/builders.h"
#include "sim/collectives/channel_bounds.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

// NCCL 2.4 has one channel per NIC and so one tree, and broadcasts after everything is reduced:
// each byte passes an inner node's NIC twice each way, with two trees once. 16 nodes on 10 GbE took
// 2.06 times as long as two trees would (all_reduce, public nccl-tests table).
constexpr int first_with_two_trees = 5;
constexpr double of_one_tree = 0.5;

class Lowering {
 public:
  Lowering(const Placement& group, const Transport& transport, const Protocol& protocol,
           const CommSchedule& schedule)
      : group_(group),
        transport_(transport),
        protocol_(protocol),
        latencies_(schedule.latencies),
        network_efficiency_(network_efficiency(schedule)),
        stream_cap_(transport.flow_cap * (transport.connections * channels_of_a_lane())) {}

  // Returns the flows of a set, none of which ends before `at_least`.
  FlowSet flows(const std::vector<Send>& sends, const std::shared_ptr<const Paths>& paths,
                const SendRuns& runs, Duration at_least) const {
    FlowSet set(paths, {});
    const NodeCaps caps = protocol_.node_cap.value() > 0 ? NodeCaps::some : NodeCaps::none;
    runs.each(sends, paths->size(), caps, [&](const SendRuns::Run& run) {
      const Send& send = *run.send;
      Flow flow =
          this->flow(send.bytes, {0, send.weight, run.crosses, true, run.share, 0}, at_least);
      flow.count = run.count;
      Flow* const last = set.flows.empty() ? nullptr : &set.flows.back();
      if (last != nullptr && last->bytes == flow.bytes && last->cap == flow.cap &&
          last->weight == flow.weight)
        last->count += flow.count;
      else
        set.flows.push_back(flow);
    });
    return set;
  }

  // Returns the flow of a send; it does not end before `at_least`.
  Flow flow(Bytes payload, const SendClass& of, Duration at_least) const {
    const Bytes bytes = payload / efficiency(of.crosses);
    Bandwidth limit = cap(of);
    if (at_least.ps() > 0) {
      const Bandwidth slow = bytes / at_least;
      if (limit.value() == 0 || slow < limit) limit = slow;
    }
    return {bytes, limit, of.weight, 1};
  }

  // Returns the analytic time of flows() without creating them. `shares` are the shares of the
  // classes of loads.
  Duration time(const std::vector<Send>& sends, const std::vector<SendClass>& classes,
                const std::vector<Share>& shares) const {
    double longest = 0;
    Bytes of_longest;
    Bandwidth rate;
    for (const SendClass& of : classes) {
      const Bandwidth limit = cap(of);
      Bandwidth reached = shares[of.loads].each;
      if (limit.value() > 0 && (reached.value() == 0 || limit < reached)) reached = limit;
      const Bytes bytes = sends[of.send].bytes / efficiency(of.crosses);
      const double time = reached.value() > 0 ? bytes.value() / reached.value() : 0;
      if (time <= longest) continue;
      longest = time;
      of_longest = bytes;
      rate = reached;
    }
    return longest > 0 ? of_longest / rate : Duration();
  }

  // Longest uncontended time of a send, within a node and between nodes. The rings of a node are
  // all busy at once, so their merged sends take the time of all.
  struct SoleTimes {
    Duration local, network;
  };
  SoleTimes sole_times(const std::vector<Send>& sends, const std::vector<SendClass>& classes,
                       const std::vector<Share>& shares) const {
    SoleTimes times;
    for (const SendClass& of : classes) {
      if (!of.first_sibling) continue;  // siblings have equal sends
      Duration& longest = of.crosses ? times.network : times.local;
      const Bandwidth alone = shares[of.loads].alone;
      Bandwidth rate = of.crosses ? sole_cap() : Bandwidth();
      if (rate.value() == 0 || (alone.value() > 0 && alone < rate)) rate = alone;
      const double merged = latencies_ == Latencies::ring && !of.crosses ? 1 : of.weight;
      if (rate.value() > 0)
        longest = std::max(longest, sends[of.send].bytes / merged / efficiency(of.crosses) / rate);
    }
    return times;
  }

 private:
  double network_efficiency(const CommSchedule& schedule) const {
    if (schedule.op == Op::all_to_all)
      return protocol_.efficiency * transport_.all_to_all_efficiency;
    if (latencies_ == Latencies::ring || latencies_ == Latencies::in_network)
      return protocol_.efficiency;
    double tree = protocol_.efficiency * protocol_.tree_efficiency;
    if (transport_.tuning && transport_.tuning->minor < first_with_two_trees) tree *= of_one_tree;
    return group_.nodes() == 2 ? tree * transport_.two_node_tree_efficiency : tree;
  }

  double efficiency(bool over_network) const {
    if (over_network) return network_efficiency_;
    return latencies_ == Latencies::in_switch ? protocol_.in_switch->efficiency
                                              : protocol_.efficiency;
  }

  // NCCL opens its connections per channel. A ring through one NIC has two channels, and so have
  // messages to a peer (src/graph/paths.cc); each of two trees has one. MPI has no channels.
  double channels_of_a_lane() const {
    if (!transport_.tuning) return 1;
    const double of_ring = nccl_channels_of_a_lane(*transport_.tuning, group_.per_node);
    return latencies_ == Latencies::ring ? of_ring : of_ring / 2;
  }

  // Returns the rate cap of a send; zero within a node. Between nodes, one limit is the cap of its
  // streams. The other, if the node is written, is the send's share of the protocol's rate out of a
  // node, divided among siblings. Caps count payload, flows count wire bytes.
  Bandwidth cap(const SendClass& of) const {
    if (!of.crosses) return {};
    const Bandwidth own = stream_cap_ * static_cast<double>(of.weight);
    if (of.share == 0 || protocol_.node_cap.value() == 0) return own;
    const Bandwidth of_node =
        protocol_.node_cap * (of.share / group_.siblings / protocol_.efficiency);
    return own.value() == 0 ? of_node : std::min(own, of_node);
  }

  Bandwidth sole_cap() const {
    const Bandwidth of_node =
        protocol_.node_cap / (protocol_.efficiency * builders::rails(group_) * group_.siblings);
    if (stream_cap_.value() == 0 || of_node.value() == 0) return std::max(stream_cap_, of_node);
    return std::min(stream_cap_, of_node);
  }

  const Placement& group_;
  const Transport& transport_;
  const Protocol& protocol_;
  Latencies latencies_;
  double network_efficiency_;  // payload bytes per byte on the wire between nodes
  Bandwidth stream_cap_;       // cap of one send; zero: no cap
};

// Returns the additional time of a transfer whose last node waits for its turn (equation in
// transport.h).
Duration late_turn(Bytes message, const Transport& transport, int nodes, Duration transfer) {
  if (nodes < 3) return {};
  const double queued = std::min(1.0, transport.queue_ahead / message);
  const Duration late = transfer.scaled(queued * (nodes - 2) / (nodes - 1));
  return late > transport.burst ? late - transport.burst : Duration();
}

// Returns the number of messages that the host posts. NCCL's kernels move data within a node; its
// proxy thread posts only messages between nodes, one by one.
double posted(const Round& round, const Transport& transport, const Placement& placement) {
  const auto messages = static_cast<double>(round.messages);
  if (!transport.tuning || placement.ranks < 2) return messages;
  const int elsewhere = std::max(0, placement.ranks - placement.per_node);
  return messages * elsewhere / (placement.ranks - 1);
}

// Returns whether data passes in slices. A ring of MPI waits for the send of a step before the
// next. NCCL's ranks do not: with g GPUs per node the NIC sends the blocks of g - 1 GPUs while
// another block is on its way to it.
bool slices(const Round& round, const Transport& transport) {
  const bool whole_blocks = round.pace == Pace::rotating && transport.tuning;
  return round.pace != Pace::stepwise && (transport.slice.value() > 0 || whole_blocks);
}

// Returns the number of slices into which the bytes of a ring or tree through one NIC are cut; one
// without a slice size.
double slices_of(const Round& round, const Transport& transport, const Protocol& protocol) {
  if (transport.slice.value() == 0) return 1;
  const double least = round.pace == Pace::rotating ? protocol.slices : 1;
  return std::max(least, round.lane_bytes / slice_of(round, transport));
}

// Returns the time that chunks in the switch add to a round; they overlap the NICs' transfers.
Duration of_chunks(const CommSchedule& schedule, const RoundTransfer& transfer, Bytes size,
                   const Transport& transport, const Protocol& protocol,
                   const Placement& placement) {
  if (schedule.latencies != Latencies::in_switch || !transport.tuning) return {};
  const Duration switched =
      transfer.local + protocol.in_switch->chunk.scaled(nvls_chunks(
                           *transport.tuning, size, placement.nodes(), placement.per_node));
  return switched > transfer.flows ? switched - transfer.flows : Duration();
}

}  // namespace

const HopLatency& hop_of(const Protocol& protocol, Latencies latencies, int nodes) {
  if (latencies == Latencies::in_switch) return protocol.in_switch->hop;
  if (nodes == 1 && protocol.alone) return *protocol.alone;
  return latencies == Latencies::ring ? protocol.ring : protocol.tree;
}

RoundLatency latency_of(const Round& round, const RoundTransfer& transfer, const HopLatency& hop,
                        const Transport& transport, const Protocol& protocol,
                        const Placement& placement) {
  RoundLatency of{hop.local * round.local_hops + hop.network * round.network_hops +
                  transport.message_overhead.scaled(posted(round, transport, placement))};
  if (round.pace == Pace::rotating)
    of.latency = of.latency.scaled(1.0 / static_cast<double>(round.times));
  if (slices(round, transport)) {
    const double k = slices_of(round, transport, protocol);
    const Duration first_slice = transfer.hops.scaled(1 / k);
    if (round.pace == Pace::rotating) {
      const Duration whole = transfer.flows * round.times;
      if (whole.ps() > 0) of.hidden = std::max(0.0, 1 - first_slice / whole);
    } else {
      const Duration last = transfer.flows.scaled(1 / k);
      if (first_slice > last) of.latency += first_slice - last;
    }
  }
  if (round.at_once.value() > 0) {
    if (round.same_order)
      of.latency += late_turn(round.at_once, transport, placement.nodes(), transfer.flows);
    if (transport.port_queue)
      of.latency += incast_wait(round, placement, *transport.port_queue, transport.connections);
  }
  return of;
}

std::vector<std::vector<RoundTransfer>> transfers_of(
    const LaidOut& laid, const Topology& topology, const Transport& transport,
    const std::vector<const Protocol*>& protocols) {
  const CommSchedule& schedule = laid.schedule;
  std::vector<std::vector<Share>> shares;  // indexed by set and class of loads
  for (const auto& paths : laid.routes) {
    shares.emplace_back();
    for (const FlowLoads::Class& of : paths->loads().classes)
      shares.back().push_back(of.share(topology));
  }
  std::vector<std::vector<RoundTransfer>> transfers;
  for (const Protocol* protocol : protocols) {
    const Lowering lowering(laid.placement, transport, *protocol, schedule);
    std::vector<Duration> times;
    for (std::size_t i = 0; i < laid.classes.size(); ++i)
      times.push_back(lowering.time(schedule.send_sets[i], laid.classes[i], shares[i]));
    transfers.emplace_back();
    for (const Round& round : schedule.rounds) {
      transfers.back().push_back({times[round.sends], {}, {}});
      if (!slices(round, transport) && schedule.latencies != Latencies::in_switch) continue;
      const auto sole = lowering.sole_times(schedule.send_sets[round.sends],
                                            laid.classes[round.sends], shares[round.sends]);
      transfers.back().back().hops =
          sole.local * round.local_hops + sole.network * round.network_hops;
      transfers.back().back().local = sole.local;
    }
  }
  return transfers;
}

bool transfers_alike(const Transport& a, const Transport& b) {
  const auto alike = [](const Protocol& one, const Protocol& other) {
    return one.efficiency == other.efficiency && one.tree_efficiency == other.tree_efficiency &&
           one.node_cap == other.node_cap &&
           one.in_switch.has_value() == other.in_switch.has_value() &&
           (!one.in_switch || one.in_switch->efficiency == other.in_switch->efficiency);
  };
  return a.flow_cap == b.flow_cap && a.connections == b.connections && a.tuning == b.tuning &&
         a.all_to_all_efficiency == b.all_to_all_efficiency &&
         a.two_node_tree_efficiency == b.two_node_tree_efficiency &&
         (a.slice.value() > 0) == (b.slice.value() > 0) &&
         std::ranges::equal(a.protocols, b.protocols, alike) &&
         std::ranges::equal(a.of_messages, b.of_messages, alike);
}

Duration time_of(const CommSchedule& schedule, const std::vector<RoundTransfer>& transfers,
                 double scale, const HopLatency& hop, const Transport& transport,
                 const Protocol& protocol, const Placement& placement) {
  if (schedule.rounds.empty()) return {};
  Duration time = hop.base;
  for (std::size_t i = 0; i < schedule.rounds.size(); ++i) {
    Round round = schedule.rounds[i];
    RoundTransfer transfer = transfers[i];
    if (scale != 1) {
      round.lane_bytes = round.lane_bytes * scale;
      round.channel_bytes = round.channel_bytes * scale;
      round.at_once = round.at_once * scale;
      transfer = {transfer.flows.scaled(scale), transfer.hops.scaled(scale),
                  transfer.local.scaled(scale)};
    }
    transfer = bounded(
        transfer, round,
        channel_bounds(round, schedule, schedule.size * scale, transport, protocol, placement));
    const RoundLatency latency = latency_of(round, transfer, hop, transport, protocol, placement);
    time += of_chunks(schedule, transfer, schedule.size * scale, transport, protocol, placement);
    time +=
        (transfer.flows + exposed(latency.latency, latency.hidden, transfer.flows)) * round.times;
  }
  return time;
}

namespace {

// Builds the program of all rounds. flows_of(lowering, set, at_least) returns the flows of a set,
// none of which ends before `at_least`, or null, which makes the result nullopt.
template <typename FlowsOf>
std::optional<CommProgram> written(const LaidOut& laid, const std::vector<RoundTransfer>& transfers,
                                   const Transport& transport, const Protocol& protocol,
                                   const FlowsOf& flows_of) {
  const Placement& placement = laid.placement;
  const CommSchedule& schedule = laid.schedule;
  CommProgram program;
  if (schedule.rounds.empty()) return program;
  LAMBCAST_CHECK(schedule.latencies != Latencies::in_switch || protocol.in_switch,
                 "{} does not reduce in the switch", protocol.name);
  const Lowering lowering(placement, transport, protocol, schedule);
  const HopLatency& hop = hop_of(protocol, schedule.latencies, placement.nodes());
  program.fixed = hop.base;
  std::vector<ChannelBounds> least(laid.routes.size());
  for (const Round& round : schedule.rounds)
    least[round.sends] =
        channel_bounds(round, schedule, schedule.size, transport, protocol, placement);
  std::vector<std::shared_ptr<const FlowSet>> sets;
  for (std::size_t i = 0; i < laid.routes.size(); ++i) {
    sets.push_back(flows_of(lowering, i, least[i].flows));
    if (sets.back() == nullptr) return std::nullopt;
  }
  for (std::size_t i = 0; i < schedule.rounds.size(); ++i) {
    const Round& round = schedule.rounds[i];
    const RoundTransfer transfer = bounded(transfers[i], round, least[round.sends]);
    const RoundLatency latency = latency_of(round, transfer, hop, transport, protocol, placement);
    program.fixed += of_chunks(schedule, transfer, schedule.size, transport, protocol, placement);
    program.phases.push_back({sets[round.sends], latency.latency, round.times, latency.hidden});
  }
  return program;
}

// Returns one flow per class if the closed-form shares (fair_share.h) give the time of max-min
// sharing; else null.
std::shared_ptr<const FlowSet> told_by_shares(const Lowering& lowering,
                                              const std::vector<Send>& sends,
                                              const std::vector<SendClass>& classes,
                                              const Paths& paths, const Topology& topology,
                                              Duration at_least) {
  FlowLoads loads{paths.loads().classes, {}};
  std::vector<Flow> flows;
  for (const SendClass& of : classes) {
    loads.runs.push_back({of.loads, 1});
    flows.push_back(lowering.flow(sends[of.send].bytes, of, at_least));
  }
  const auto no_links = [is_empty = flows.empty()](LinkLists&) {
    LAMBCAST_CHECK(is_empty, "its time follows from its shares");
  };
  auto set = std::make_shared<const FlowSet>(
      std::make_shared<const Paths>(flows.size(), no_links, std::move(loads), topology),
      std::move(flows));
  return set->flows.empty() || last_flow(*set, topology).max_min ? set : nullptr;
}

}  // namespace

CommProgram lower(const LaidOut& laid, const Topology& topology,
                  const std::vector<RoundTransfer>& transfers, const Transport& transport,
                  const Protocol& protocol, bool expand) {
  const Routes routes = on(topology, laid.routes);
  const SendRuns runs(laid.placement);
  CommProgram program = *written(laid, transfers, transport, protocol,
                                 [&](const Lowering& lowering, std::size_t set, Duration at_least) {
                                   return std::make_shared<const FlowSet>(lowering.flows(
                                       laid.schedule.send_sets[set], routes[set], runs, at_least));
                                 });
  program.expand = expand;
  return program;
}

std::optional<FoldedProgram> lower_folded(const LaidOut& laid, const Topology& topology,
                                          const std::vector<RoundTransfer>& transfers,
                                          const Transport& transport, const Protocol& protocol) {
  std::vector<Alike::Trunk> trunks;  // trunks of all sets
  const auto flows_of = [&](const Lowering& lowering, std::size_t set,
                            Duration at_least) -> std::shared_ptr<const FlowSet> {
    const Paths& paths = *laid.routes[set];
    const std::vector<Send>& sends = laid.schedule.send_sets[set];
    if (auto told = told_by_shares(lowering, sends, laid.classes[set], paths, topology, at_least))
      return told;
    const auto [known, is_new] = laid.folded->try_emplace(set);
    if (is_new) known->second = fold_sends(sends, paths, laid.placement, laid.caps, topology);
    if (!known->second) return nullptr;
    const auto& [classes, over_trunks, of_set] = *known->second;
    LinkLists links = over_trunks;
    for (LinkId& link : links.links) link += static_cast<LinkId>(trunks.size());
    trunks.insert(trunks.end(), of_set.begin(), of_set.end());
    std::vector<Flow> flows;
    for (const auto& [of, count] : classes) {
      const Flow flow = lowering.flow(sends[of.send].bytes, of, at_least);
      flows.push_back({flow.bytes * count, flow.cap * count, flow.weight * count, 1});
    }
    return std::make_shared<const FlowSet>(std::make_shared<const Paths>(std::move(links)),
                                           std::move(flows));
  };
  auto program = written(laid, transfers, transport, protocol, flows_of);
  if (!program) return std::nullopt;
  return FoldedProgram{std::move(*program),
                       std::make_shared<const Topology>(trunk_topology(trunks, topology))};
}

}  // namespace lambcast
