#include "models/training/shared_network.h"

#include <set>

namespace lambcast {
namespace {

constexpr std::size_t most_laid = 1024;

bool fits(const ProcessGroup& group, const Place& place, int nodes, int gpus_per_node) {
  const int last = place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
  return last < gpus_per_node && place.node + group.node_span() <= nodes;
}

// What of a group lies on a machine at a place. Where the ranks of a stage straddle nodes (pipeline
// stages of 6 on nodes of 8) some of its siblings lie on the next ones.
ProcessGroup laid_of(ProcessGroup group, const Place& place, int nodes, int gpus_per_node) {
  while (group.siblings > 1 && !fits(group, place, nodes, gpus_per_node)) --group.siblings;
  return group;
}

// Paths shared by the rounds of a program stay shared.
using Scaled = std::map<const FlowSet*, std::shared_ptr<const FlowSet>>;

std::shared_ptr<const FlowSet> scaled_set(const std::shared_ptr<const FlowSet>& flows,
                                          double factor, Scaled& known) {
  std::shared_ptr<const FlowSet>& result = known[flows.get()];
  if (result == nullptr) {
    FlowSet set = *flows;
    for (Flow& flow : set.flows) flow.bytes = flow.bytes * factor;
    result = std::make_shared<const FlowSet>(std::move(set));
  }
  return result;
}

}  // namespace

SharedNetwork::SharedNetwork(std::shared_ptr<const Cluster> cluster, int nodes, int gpus_per_node)
    : cluster_(std::move(cluster)),
      nodes_(nodes),
      gpus_per_node_(gpus_per_node),
      machines_(machines_of(*cluster_, Backend::nccl, {nodes * gpus_per_node, gpus_per_node})) {}

const Topology& SharedNetwork::topology() { return machines_.full().machine->topology; }

SharedNetwork::Laid SharedNetwork::lay(const Call& call, const CollectiveCost& alone) {
  const Place place = fits(call.group, call.place, nodes_, gpus_per_node_) ? call.place : Place();
  if (laid_.size() >= most_laid) laid_.clear();
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
  const Collective collective =
      plan_collective(request, machines_, transport_of(*cluster_, call.backend));
  Laid laid;
  laid.program = collective.program;
  laid.alone = simulate(collective, NetworkModel::flow);
  std::set<const FlowSet*> sets;
  for (const CommPhase& phase : laid.program->phases)
    if (sets.insert(phase.flows.get()).second) laid.flows += phase.flows->size();
  return laid_.emplace(key, laid).first->second;
}

CommProgram scaled(const CommProgram& program, double factor) {
  CommProgram result;
  result.fixed = program.fixed.scaled(factor);
  result.expand = program.expand;
  Scaled known;
  for (const CommPhase& phase : program.phases)
    result.phases.push_back({scaled_set(phase.flows, factor, known), phase.latency.scaled(factor),
                             phase.times, phase.hidden});
  return result;
}

}  // namespace lambcast
