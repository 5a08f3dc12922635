#include "sim/collectives/lower.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/builders.h"

namespace lambcast {
namespace {

class Lowering {
 public:
  Lowering(const Placement& group, const Machine& machine, const Transport& transport,
           const Protocol& protocol, Latencies latencies)
      : group_(group),
        machine_(machine),
        transport_(transport),
        protocol_(protocol),
        latencies_(latencies) {}

  FlowSet flows(const std::vector<Send>& sends, const RoutedSends& routes) const {
    const std::vector<Bytes> leaving = leaving_each_node(sends);
    std::vector<Flow> flows;
    flows.reserve(routes.first.size());
    for (std::size_t i = 0; i + 1 < routes.first.size(); ++i) {
      const Send& send = sends[i % sends.size()];
      flows.push_back({routes.first[i], routes.first[i + 1] - routes.first[i],
                       send.bytes / efficiency(send), cap(send, leaving), send.weight});
    }
    return {routes.links, std::move(flows)};
  }

  // The longest that a send of each kind takes with its links to itself.
  struct SoleTimes {
    Duration local, network;
  };
  SoleTimes sole_times(const std::vector<Send>& sends, const FlowSet& set) const {
    SoleTimes times;
    for (std::size_t i = 0; i < sends.size(); ++i) {
      const Flow& flow = set.flows[i];
      Bandwidth rate = crosses(sends[i]) ? sole_cap() : Bandwidth();
      for (std::uint32_t j = 0; j < flow.link_count; ++j) {
        const Bandwidth link = machine_.topology.capacity((*set.links)[flow.first_link + j]);
        if (rate.value() == 0 || link < rate) rate = link;
      }
      Duration& longest = crosses(sends[i]) ? times.network : times.local;
      if (rate.value() > 0) longest = std::max(longest, flow.bytes / rate);
    }
    return times;
  }

 private:
  bool crosses(const Send& send) const {
    return group_.node_of(send.from) != group_.node_of(send.to);
  }

  double efficiency(const Send& send) const {
    if (crosses(send))
      return latencies_ == Latencies::ring ? protocol_.efficiency
                                           : protocol_.efficiency * protocol_.tree_efficiency;
    return latencies_ == Latencies::in_switch ? protocol_.in_switch->efficiency
                                              : protocol_.efficiency;
  }

  std::vector<Bytes> leaving_each_node(const std::vector<Send>& sends) const {
    std::vector<Bytes> leaving(static_cast<std::size_t>(group_.nodes()));
    for (const Send& send : sends)
      if (crosses(send)) leaving[static_cast<std::size_t>(group_.node_of(send.from))] += send.bytes;
    return leaving;
  }

  // A stream's own limit, and its share of what the protocol gets out of a node, which siblings
  // divide among them. Caps are payload, flows are wire bytes.
  Bandwidth cap(const Send& send, const std::vector<Bytes>& leaving) const {
    if (!crosses(send)) return {};
    const double streams = static_cast<double>(send.weight) * transport_.connections;
    const Bandwidth own = transport_.flow_cap * streams;
    if (protocol_.node_cap.value() == 0) return own;
    const double share = send.bytes / leaving[static_cast<std::size_t>(group_.node_of(send.from))];
    const Bandwidth of_node = protocol_.node_cap * (share / group_.siblings / protocol_.efficiency);
    return own.value() == 0 ? of_node : std::min(own, of_node);
  }

  Bandwidth sole_cap() const {
    const Bandwidth own = transport_.flow_cap * transport_.connections;
    const Bandwidth of_node =
        protocol_.node_cap / (protocol_.efficiency * builders::rails(group_) * group_.siblings);
    if (own.value() == 0 || of_node.value() == 0) return std::max(own, of_node);
    return std::min(own, of_node);
  }

  const Placement& group_;
  const Machine& machine_;
  const Transport& transport_;
  const Protocol& protocol_;
  Latencies latencies_;
};

// What a transfer takes longer because the last node waits for its turn (the equation of
// transport.h).
Duration late_turn(Bytes message, const Transport& transport, int nodes, Duration transfer) {
  if (nodes < 3) return {};
  const double queued = std::min(1.0, transport.queue_ahead / message);
  const Duration late = transfer.scaled(queued * (nodes - 2) / (nodes - 1));
  return late > transport.burst ? late - transport.burst : Duration();
}

bool slices(const Round& round, const Transport& transport) {
  return round.pace != Pace::stepwise && transport.slice.value() > 0;
}

// What the latency of the round depends on, and no more: zero elsewhere.
RoundTransfer transfer_of(const Round& round, const std::vector<Send>& sends, const FlowSet& flows,
                          const Lowering& lowering, const Machine& machine,
                          const Transport& transport) {
  RoundTransfer transfer;
  const bool sliced = slices(round, transport);
  if (sliced || round.same_order) transfer.flows = analytic_time(flows, machine.topology);
  if (sliced) {
    const auto sole = lowering.sole_times(sends, flows);
    transfer.hops = sole.local * round.local_hops + sole.network * round.network_hops;
  }
  return transfer;
}

}  // namespace

const HopLatency& hop_of(const Protocol& protocol, Latencies latencies, int nodes) {
  if (latencies == Latencies::in_switch) return protocol.in_switch->hop;
  if (nodes == 1 && protocol.alone) return *protocol.alone;
  return latencies == Latencies::tree ? protocol.tree : protocol.ring;
}

RoundLatency latency_of(const Round& round, const RoundTransfer& transfer, const HopLatency& hop,
                        const Transport& transport, const Protocol& protocol,
                        const Placement& placement) {
  RoundLatency of{hop.local * round.local_hops + hop.network * round.network_hops +
                  transport.message_overhead * round.messages};
  if (round.pace == Pace::rotating)
    of.latency = of.latency.scaled(1.0 / static_cast<double>(round.times));
  if (slices(round, transport)) {
    const double least = round.pace == Pace::rotating ? protocol.slices : 1;
    const double k = std::max(least, round.lane_bytes / transport.slice);
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

std::vector<RoundTransfer> transfers_of(const Schedule& schedule, const Routes& routes,
                                        const Placement& placement, const Machine& machine,
                                        const Transport& transport, const Protocol& protocol) {
  const Lowering lowering(placement, machine, transport, protocol, schedule.latencies);
  std::vector<FlowSet> sets;
  std::vector<Duration> times;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    sets.push_back(lowering.flows(schedule.send_sets[i], routes[i]));
    times.push_back(analytic_time(sets[i], machine.topology));
  }
  std::vector<RoundTransfer> transfers;
  for (const Round& round : schedule.rounds) {
    transfers.push_back(transfer_of(round, schedule.send_sets[round.sends], sets[round.sends],
                                    lowering, machine, transport));
    transfers.back().flows = times[round.sends];
  }
  return transfers;
}

CommProgram lower(const Schedule& schedule, const Routes& routes, const ProcessGroup& group,
                  const Machine& machine, const Transport& transport, const Protocol& protocol,
                  bool expand, const Place& place) {
  CommProgram program;
  program.expand = expand;
  if (schedule.rounds.empty()) return program;
  LAMBCAST_CHECK(schedule.latencies != Latencies::in_switch || protocol.in_switch,
                 "{} does not reduce in the switch", protocol.name);
  const Placement placement = placed(group, machine, place);
  const Lowering lowering(placement, machine, transport, protocol, schedule.latencies);
  const HopLatency& hop = hop_of(protocol, schedule.latencies, group.nodes());
  program.fixed = hop.base;
  std::vector<std::shared_ptr<const FlowSet>> sets;
  for (std::size_t i = 0; i < routes.size(); ++i)
    sets.push_back(
        std::make_shared<const FlowSet>(lowering.flows(schedule.send_sets[i], routes[i])));
  for (const Round& round : schedule.rounds) {
    const std::shared_ptr<const FlowSet>& flows = sets[round.sends];
    const RoundTransfer transfer =
        transfer_of(round, schedule.send_sets[round.sends], *flows, lowering, machine, transport);
    const RoundLatency latency = latency_of(round, transfer, hop, transport, protocol, placement);
    program.phases.push_back({flows, latency.latency, round.times, latency.hidden});
  }
  return program;
}

Duration analytic_time(const CommProgram& program, const Topology& topology) {
  Duration time = program.fixed;
  for (const Phase& phase : program.phases) {
    const Duration transfer = analytic_time(*phase.flows, topology);
    time += (transfer + exposed(phase.latency, phase.hidden, transfer)) * phase.times;
  }
  return time;
}

}  // namespace lambcast
