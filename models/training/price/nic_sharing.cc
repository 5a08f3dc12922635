#include "models/training/price/nic_sharing.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "topologies/nic_limit.h"

namespace lambcast {
namespace {

// Rate of every link of this topology. The bytes of a flow are set so that they take the time for
// which the call keeps a NIC busy.
constexpr Bandwidth one_nic(1e12);

std::size_t node_of(const StepPlan& plan, const PlanOp& op) {
  if (!plan.pipeline) return 0;
  return static_cast<std::size_t>(
      plan.pipeline->places[static_cast<std::size_t>(op.rank_class)].node);
}

}  // namespace

int stages_among(const PipelinePlan& plan, const Call& call) {
  const auto is_call = [&](const Call& sent) { return &sent == &call; };
  if (std::ranges::any_of(plan.sends, is_call)) return 1;
  const ProcessGroup& group = call.group;
  const auto stages = static_cast<int>(std::ranges::count_if(plan.places, [&](const Place& place) {
    return place.node == 0 && place.slot < group.slots();
  }));
  return stages > 0 && group.siblings % stages == 0 ? stages : 1;
}

NicUse nic_use(const PipelinePlan& plan, int stage, const Call& call, Bytes per_node, Duration time,
               const TrainingPlan& training) {
  if (call.group.nodes() == 1 || time == Duration()) return {};
  const Cluster& cluster = *training.cluster;
  const int gpus = training.gpus_per_node;
  const int all = nics_in_use(cluster, gpus), nics = std::min(all, gpus);
  const Place& place = plan.places[static_cast<std::size_t>(stage)];
  std::set<int> used;
  for (int sibling = 0; sibling < call.group.siblings; ++sibling)
    for (int member = 0; member < call.group.per_node; ++member) {
      const int slot = place.slot + call.group.slot_of(member, sibling);
      used.insert(slot % gpus * nics / gpus);
    }
  const Bandwidth each =
      reached_nic_rate(cluster, library_of(cluster, call.backend), {2 * gpus, gpus}) *
      (static_cast<double>(all) / nics);
  const Duration busy = per_node / (each * static_cast<double>(used.size()));
  return {place.node, {used.begin(), used.end()}, std::min(1.0, busy / time)};
}

std::vector<Bytes> bytes_by_node(const StepPlan& plan, const std::vector<Price>& prices) {
  std::map<std::size_t, Bytes> nodes;
  for (std::size_t i = 0; i < plan.ops.size(); ++i)
    nodes[node_of(plan, plan.ops[i])] += prices[i].network_bytes_per_node;
  std::vector<Bytes> bytes;
  for (const auto& [node, sent] : nodes) bytes.push_back(sent);
  return bytes;
}

Duration least_on_nics(const StepPlan& plan, const std::vector<Price>& prices) {
  std::map<std::size_t, Duration> nodes;
  Duration most;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    Duration& node = nodes[node_of(plan, plan.ops[i])];
    node += prices[i].least_on_nics;
    most = std::max(most, node);
  }
  return most;
}

NicSharing::NicSharing(const StepPlan& plan, const std::vector<Price>& prices)
    : prices_(prices), paths_(plan.ops.size()) {
  std::map<std::pair<int, int>, std::set<int>> stages;
  for (std::size_t i = 0; i < prices.size(); ++i)
    for (const int nic : prices[i].nics.used)
      stages[{prices[i].nics.node, nic}].insert(plan.ops[i].rank_class);
  std::map<std::pair<int, int>, LinkId> links;
  for (const auto& [nic, by] : stages) {
    if (by.size() == 1) continue;
    const VertexId from = topology_.add_vertex({VertexKind::nic, nic.first, nic.second});
    const VertexId to = topology_.add_vertex({VertexKind::fabric});
    links[nic] = topology_.add_link(from, to, one_nic, LinkKind::network);
  }
  any_ = !links.empty();
  for (std::size_t i = 0; any_ && i < prices.size(); ++i)
    for (const int nic : prices[i].nics.used)
      if (const auto link = links.find({prices[i].nics.node, nic}); link != links.end())
        paths_[i].push_back(link->second);
}

std::vector<std::shared_ptr<const CommProgram>> NicSharing::programs(End end) const {
  std::vector<std::shared_ptr<const CommProgram>> programs(paths_.size());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const Bandwidth rate = one_nic * prices_[i].nics.share;
    const Bytes busy(rate.value() * prices_[i].at(end).s());
    if (paths_[i].empty() || busy.value() == 0) continue;
    const std::vector<std::vector<LinkId>> path{paths_[i]};
    const auto flows = std::make_shared<const FlowSet>(path, std::vector<Flow>{{busy, rate}});
    programs[i] = std::make_shared<const CommProgram>(CommProgram{{}, {{flows, {}, 1, 0}}, false});
  }
  return programs;
}

}  // namespace lambcast
