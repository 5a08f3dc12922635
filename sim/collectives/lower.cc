#include "sim/collectives/lower.h"

#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/builders.h"

namespace lambcast {
namespace {

class Lowering {
 public:
  Lowering(const Layout& layout, const Machine& machine, const Transport& transport,
           double efficiency)
      : layout_(layout), machine_(machine), transport_(transport), efficiency_(efficiency) {
    LAMBCAST_CHECK(layout.folded == machine.folded, "layout and machine disagree about folding");
    LAMBCAST_CHECK(layout.gpus_per_node <= machine.gpus_per_node && layout.nodes() <= machine.nodes,
                   "{} ranks do not fit {} nodes of {} GPUs", layout.ranks, machine.nodes,
                   machine.gpus_per_node);
  }

  FlowSet flows(const std::vector<Send>& sends) const {
    FlowSet set;
    set.flows.reserve(sends.size());
    for (const Send& send : sends) {
      const auto first = static_cast<std::uint32_t>(set.links.size());
      const bool crosses = layout_.node_of(send.from) != layout_.node_of(send.to);
      append_route(send, crosses, set.links);
      const double streams = static_cast<double>(send.weight) * transport_.connections;
      const Bandwidth cap = crosses ? transport_.flow_cap * streams : Bandwidth();
      set.flows.push_back({first, static_cast<std::uint32_t>(set.links.size()) - first,
                           send.bytes / efficiency_, cap, send.weight});
    }
    return set;
  }

 private:
  void append_route(const Send& send, bool crosses, std::vector<LinkId>& links) const {
    const Topology& topology = machine_.topology;
    const auto salt = static_cast<std::uint32_t>(send.to);
    if (!crosses) {
      topology.append_route(endpoint(send.from), endpoint(send.to), salt, links);
      return;
    }
    const VertexId out = nic(send.from, send.rail);
    const VertexId in = nic(send.to, send.rail);
    topology.append_route(endpoint(send.from), out, salt, links);
    if (machine_.folded) {
      // Out to the fabric and back in: the node's own NIC plays the peer's.
      append_loop(out, in, links);
    } else {
      topology.append_route(out, in, salt, links);
    }
    topology.append_route(in, endpoint(send.to), salt, links);
  }

  void append_loop(VertexId out, VertexId in, std::vector<LinkId>& links) const {
    const VertexId fabric = machine_.fabric;
    machine_.topology.append_route(out, fabric, 0, links);
    machine_.topology.append_route(fabric, in, 0, links);
  }

  std::size_t node_index(int rank) const {
    return machine_.folded ? 0 : static_cast<std::size_t>(layout_.node_of(rank));
  }

  VertexId endpoint(int rank) const {
    const std::size_t local = static_cast<std::size_t>(rank % layout_.gpus_per_node);
    const std::size_t at =
        node_index(rank) * static_cast<std::size_t>(machine_.gpus_per_node) + local;
    return transport_.endpoint == Endpoint::gpu ? machine_.gpu[at] : machine_.host[at];
  }

  // A rail names its NIC among those the layout uses; without one a rank uses the NIC next to it.
  VertexId nic(int rank, int rail) const {
    const int nics = machine_.nics_per_node;
    const int local = rank % layout_.gpus_per_node;
    const int used = std::min(nics, layout_.gpus_per_node);
    const int index = rail >= 0 ? rail * nics / used : local * nics / layout_.gpus_per_node;
    return machine_
        .nic[node_index(rank) * static_cast<std::size_t>(nics) + static_cast<std::size_t>(index)];
  }

  const Layout& layout_;
  const Machine& machine_;
  const Transport& transport_;
  double efficiency_;
};

}  // namespace

CommProgram lower(const Schedule& schedule, const Layout& layout, const Machine& machine,
                  const Transport& transport, const Protocol& protocol, bool expand) {
  const Lowering lowering(layout, machine, transport, protocol.efficiency);
  const HopLatency& hop = schedule.tree_latency ? protocol.tree : protocol.ring;
  CommProgram program;
  program.expand = expand;
  if (schedule.rounds.empty()) return program;
  program.fixed = hop.base;
  std::vector<std::shared_ptr<const FlowSet>> sets;
  for (const auto& sends : schedule.send_sets)
    sets.push_back(std::make_shared<const FlowSet>(lowering.flows(sends)));
  for (const Round& round : schedule.rounds) {
    const Duration latency = hop.local * round.local_hops + hop.network * round.network_hops +
                             transport.message_overhead * round.messages;
    program.phases.push_back({sets[round.sends], latency, round.times});
  }
  return program;
}

Duration analytic_time(const CommProgram& program, const Topology& topology) {
  Duration time = program.fixed;
  for (const Phase& phase : program.phases)
    time += (analytic_time(*phase.flows, topology) + phase.latency) * phase.times;
  return time;
}

}  // namespace lambcast
