#include "models/training/price/shared_network.h"

#include <algorithm>
#include <set>
#include <span>

#include "models/training/price/collective_costs.h"
#include "models/training/price/peer_groups.h"
#include "sim/engine/engine.h"

namespace lambcast {
namespace {

// Limits of the caches of a network: calls, and flows of their rounds (some 40 bytes each).
constexpr std::size_t most_laid = 4096, most_kept_flows = std::size_t{1} << 22;

bool fits(const ProcessGroup& group, const Place& place, int nodes, int gpus_per_node) {
  const int last = place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
  return last < gpus_per_node && place.node + group.node_span() <= nodes;
}

// Returns the group with only as many siblings as fit on the machine at a place. If the ranks of a
// stage straddle nodes (stages of 6 ranks on nodes of 8), some siblings are on the next nodes.
ProcessGroup laid_of(ProcessGroup group, const Place& place, int nodes, int gpus_per_node) {
  while (group.siblings > 1 && !fits(group, place, nodes, gpus_per_node)) --group.siblings;
  return group;
}

// Returns the number of flows of an exchange in which each rank sends to each other one; 0 for
// other calls.
std::size_t flows_of_pairs(Op op, const std::string& algorithm, const ProcessGroup& group) {
  if (op != Op::all_to_all || algorithm == "bruck") return 0;
  const auto ranks = static_cast<std::size_t>(group.ranks);
  return ranks * (ranks - 1) * static_cast<std::size_t>(group.siblings);
}

// Returns the program with `change` applied once to each set of flows, and with its waits scaled.
template <typename Change>
CommProgram changed(const CommProgram& program, double wait_factor, const Change& change) {
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> known;
  CommProgram result;
  result.fixed = program.fixed.scaled(wait_factor);
  result.expand = program.expand;
  for (const CommPhase& phase : program.phases) {
    std::shared_ptr<const FlowSet>& flows = known[phase.flows.get()];
    if (flows == nullptr) {
      FlowSet set = *phase.flows;
      change(set);
      flows = std::make_shared<const FlowSet>(std::move(set));
    }
    result.phases.push_back({flows, phase.latency.scaled(wait_factor), phase.times, phase.hidden});
  }
  return result;
}

// Returns the time that the busiest link between nodes takes for the program's bytes.
Duration busiest_link(const CommProgram& program, const Topology& topology) {
  std::vector<Duration> links(topology.links().size());
  Duration most;
  for (const CommPhase& phase : program.phases)
    phase.flows->each([&](const Flow& flow, std::size_t path) {
      for (const LinkId id : phase.flows->paths->links().of(path))
        if (topology.link(id).kind == LinkKind::network)
          most = std::max(most, links[id] += flow.bytes / topology.capacity(id) * phase.times);
    });
  return most;
}

}  // namespace

SharedNetwork::SharedNetwork(std::shared_ptr<const Cluster> cluster, Machines machines, int nodes,
                             int gpus_per_node)
    : cluster_(std::move(cluster)),
      nodes_(nodes),
      gpus_per_node_(gpus_per_node),
      machines_(std::move(machines)) {}

std::shared_ptr<const Topology> SharedNetwork::topology() {
  const std::shared_ptr<const Machine>& machine = machines_.full().machine;
  return {machine, &machine->topology};
}

SharedNetwork::Laid SharedNetwork::lay(const Call& call, const CollectiveCost& alone,
                                       const std::vector<int>& nodes) {
  const Place place = fits(call.group, call.place, nodes_, gpus_per_node_) ? call.place : Place();
  forget_where_full();
  const std::tuple key(call.group, place.node, place.slot, call.backend, call.op,
                       call.bytes.value(), alone.algorithm, alone.protocol);
  if (const auto known = laid_.find(key); known != laid_.end()) return known->second;
  const LibrarySpec& library = library_of(*cluster_, call.backend);
  CollectiveRequest request;
  request.op = call.op;
  request.size = call.bytes;
  request.group = laid_of(call.group, place, nodes_, gpus_per_node_);
  request.rules = library.rules;
  request.algorithm = alone.algorithm;
  request.protocol = alone.protocol;
  request.beside = place;
  Laid laid;
  laid.flows = flows_of_pairs(call.op, alone.algorithm, request.group);
  if (laid.flows > most_flows) return laid;
  const Transport transport = transport_of(*cluster_, call.backend);
  const Collective collective = plan_collective(request, machines_, transport);
  laid.program = laid.with_peers = collective.program;
  const std::vector<int> peers = peer_distances(request.group, place.node, nodes);
  if (peers.size() > 1) {
    std::vector<std::shared_ptr<const CommProgram>> programs{collective.program};
    for (const int distance : std::span(peers).subspan(1)) {
      request.beside = Place{place.node + distance, place.slot};
      programs.push_back(plan_collective(request, machines_, transport).program);
    }
    laid.with_peers = in_step(programs);
  }
  // The time of a call without peers follows from the shares of its flows. The call is folded,
  // which needs its links, only if the shares are unlike.
  const FoldedPrograms alike = shares_are_unlike(collective)
                                   ? folded({collective.program})
                                   : FoldedPrograms{topology(), {collective.program}};
  laid.alone = time_alone(*alike.programs.front(), *alike.topology);
  if (call.group.nodes() > 1) laid.on_link = busiest_link(*laid.program, *topology());
  laid.flows = 0;
  std::set<const FlowSet*> sets;
  for (const CommPhase& phase : laid.with_peers->phases)
    if (sets.insert(phase.flows.get()).second) laid.flows += phase.flows->size();
  kept_flows_ += laid.flows;
  return laid_.emplace(key, laid).first->second;
}

std::shared_ptr<const Paths> SharedNetwork::joined(const PathsList& paths) {
  std::shared_ptr<const Paths>& known = joined_[paths];
  if (known != nullptr) return known;
  LinkLists links;
  for (const auto& of : paths)
    for (std::size_t i = 0; i < of->size(); ++i) links.add(of->links().of(i));
  kept_flows_ += links.size();
  return known = std::make_shared<const Paths>(std::move(links));
}

void SharedNetwork::forget_where_full() {
  if (laid_.size() < most_laid && kept_flows_ < most_kept_flows) return;
  laid_.clear();
  joined_.clear();
  folds_ = {};
  kept_flows_ = 0;
}

FoldedPrograms SharedNetwork::folded(
    const std::vector<std::shared_ptr<const CommProgram>>& programs) {
  return fold(programs, topology(), &folds_);
}

// Merges programs with the same rounds into one whose rounds contain the flows of all.
std::shared_ptr<const CommProgram> SharedNetwork::in_step(
    const std::vector<std::shared_ptr<const CommProgram>>& programs) {
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> known;
  CommProgram result = *programs.front();
  for (std::size_t i = 0; i < result.phases.size(); ++i) {
    std::shared_ptr<const FlowSet>& merged = known[result.phases[i].flows.get()];
    if (merged == nullptr) {
      PathsList paths;
      std::vector<Flow> flows;
      for (const auto& program : programs) {
        const FlowSet& set = *program->phases[i].flows;
        paths.push_back(set.paths);
        flows.insert(flows.end(), set.flows.begin(), set.flows.end());
      }
      merged = std::make_shared<const FlowSet>(joined(paths), std::move(flows));
    }
    result.phases[i].flows = merged;
  }
  return std::make_shared<const CommProgram>(std::move(result));
}

CommProgram paced(const SharedNetwork::Laid& laid, const Topology& topology, Duration time,
                  Duration busy) {
  const double longer = time / laid.alone;
  if (laid.on_link == Duration()) return scaled(*laid.with_peers, longer);
  const double factor = std::min(longer, busy / laid.on_link);
  return changed(*laid.with_peers, longer, [&](FlowSet& set) {
    const Duration round =
        time_alone({{}, {{std::make_shared<const FlowSet>(set), {}, 1, 0}}, false}, topology)
            .scaled(longer);
    for (Flow& flow : set.flows) {
      flow.bytes = flow.bytes * factor;
      flow.cap = flow.bytes / round;
    }
  });
}

Duration time_alone(const CommProgram& program, const Topology& topology) {
  TaskGraph graph;
  graph.add_communication("alone", Category::forward, graph.add_resource("network"), &program);
  return run(graph, *make_network(NetworkModel::flow, topology)).end.since_start();
}

CommProgram scaled(const CommProgram& program, double factor) {
  return changed(program, factor, [&](FlowSet& set) {
    for (Flow& flow : set.flows) flow.bytes = flow.bytes * factor;
  });
}

}  // namespace lambcast
