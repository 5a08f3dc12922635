#include "models/training/price/collective_costs.h"

#include <algorithm>
#include <utility>

#include "models/training/price/shared_network.h"
#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

// Limits of the caches. Costs take some 20 MB and shapes some 40 MB; shared machines are large, so
// few are kept.
constexpr std::size_t most_costs = 65536, most_shapes = 2048, most_shared = 4;
// Limit of the cached clusters, some 5 kB each.
constexpr std::size_t most_clusters = 4096;

// Returns the largest number of nodes of one leaf, among the `stride` nodes from `first`, whose
// partner `stride` nodes further is under another leaf.
int senders_from_a_leaf(int nodes_per_leaf, int first, int stride) {
  int most = 0;
  for (int leaf = first / nodes_per_leaf; leaf * nodes_per_leaf < first + stride; ++leaf) {
    const int end = (leaf + 1) * nodes_per_leaf;
    const int from = std::max({first, leaf * nodes_per_leaf, end - stride});
    most = std::max(most, std::min(first + stride, end) - from);
  }
  return most;
}

// How a group shares the leaves of a tree with equal groups.
struct SharedLeaves {
  ProcessGroup group;  // the group on its part of the leaves
  int groups = 1;      // number of groups that share a leaf, this one included
};

SharedLeaves shared_leaves(const FabricSpec& fabric, const ProcessGroup& group, Op op,
                           int first_node) {
  const bool is_tree =
      fabric.kind == FabricKind::fat_tree || fabric.kind == FabricKind::rail_optimised;
  SharedLeaves shared{group};
  if (!is_tree || fabric.oversubscription.value <= 1 || group.nodes() == 1) return shared;
  if (op != Op::send_recv || group.ranks != 2) {
    shared.groups = group.node_stride;
    shared.group.node_stride = 1;
    return shared;
  }
  const int senders = senders_from_a_leaf(fabric.nodes_per_leaf, first_node, group.node_stride);
  if (senders == 0) return shared;
  shared.groups = senders;
  shared.group.node_stride = std::max(1, fabric.nodes_per_leaf / senders);  // in the next leaf
  return shared;
}

}  // namespace

void CollectiveCosts::forget_where_full() {
  if (costs_.size() >= most_costs) costs_.clear();
  if (shapes_.size() >= most_shapes) shapes_.clear();
  if (seen_.size() < most_clusters) return;
  costs_.clear();
  shapes_.clear();
  seen_.clear();
  firsts_.clear();
}

const CollectiveCosts::ClusterPtr& CollectiveCosts::representative(const ClusterPtr& cluster) {
  const auto [known, is_new] = seen_.try_emplace(cluster);
  if (!is_new) return known->second;
  return known->second = *firsts_.insert(cluster).first;
}

SharedNetwork& CollectiveCosts::shared_network(const std::shared_ptr<const Cluster>& cluster,
                                               int nodes, int gpus_per_node) {
  const std::tuple key(representative(cluster), nodes, gpus_per_node);
  if (const auto known = shared_.find(key); known != shared_.end()) return *known->second;
  if (shared_.size() >= most_shared) shared_.clear();
  Machines machines = machines_of(*cluster, Backend::nccl, {nodes * gpus_per_node, gpus_per_node});
  machines.keep(laid_outs_, wiring_of(*cluster, machines.node()));
  return *(shared_[key] =
               std::make_shared<SharedNetwork>(cluster, std::move(machines), nodes, gpus_per_node));
}

int CollectiveCosts::wiring_of(const Cluster& cluster, const NodeSpec& node) {
  const FabricSpec& fabric = cluster.fabric;
  const Wiring wiring(fabric.kind, fabric.nodes_per_leaf, fabric.oversubscription.value,
                      fabric.dimensions, fabric.routers_per_group, node.gpus, node.nics,
                      node.pcie_peers);
  return wirings_.try_emplace(wiring, static_cast<int>(wirings_.size())).first->second;
}

CollectiveCosts::Shape& CollectiveCosts::shape(const Place& place) {
  if (const auto known = shapes_.find(place); known != shapes_.end()) return *known->second;
  auto shape = std::make_unique<Shape>();
  const auto wire = [&](const Cluster& cluster) {
    shape->machines = machines_of(cluster, place.backend, place.group);
    shape->machines.keep(laid_outs_, wiring_of(cluster, shape->machines.node()));
  };
  if (place.in_leaves == 1) {
    wire(*place.cluster);
  } else {
    Cluster part = *place.cluster;
    part.fabric.nodes_per_leaf = std::max(1, part.fabric.nodes_per_leaf / place.in_leaves);
    wire(part);
  }
  shape->transport = transport_of(*place.cluster, place.backend);
  return *shapes_.emplace(place, std::move(shape)).first->second;
}

const CollectiveCost& CollectiveCosts::cost(const Setting& setting, Backend backend, Op op,
                                            Bytes size, const std::string& algorithm) {
  forget_where_full();
  const Cluster& cluster = *representative(setting.cluster);
  SharedLeaves leaves{setting.group};
  if (setting.network == NetworkModel::analytic)
    leaves = shared_leaves(cluster.fabric, setting.group, op, setting.first_node);
  const ProcessGroup& group = leaves.group;
  const Place place{&cluster, group, leaves.groups, setting.network, setting.expand, backend};
  const std::tuple key(place, op, size.value(), algorithm);
  ++counts_.asked;
  if (const auto known = costs_.find(key); known != costs_.end()) return known->second;
  ++counts_.planned;
  const LibrarySpec& library = library_of(cluster, backend);
  Shape& on = shape(place);
  CollectiveRequest request;
  request.op = op;
  request.size = size;
  request.group = group;
  request.rules = library.rules;
  request.algorithm = algorithm;
  if (algorithm.empty()) request.algorithm = forced_algorithm(library, op, request.group);
  request.expand = setting.expand;
  const bool analytic = setting.network == NetworkModel::analytic && !setting.expand;
  request.priced_alone = analytic;
  const Collective collective = plan_collective(request, on.machines, on.transport);
  const Duration time = analytic ? collective.time : simulate(collective, setting.network);
  Tip tip = tip_of(request, on.machines, on.transport, time, setting.network);
  tip.approximation = approximation_of(collective, setting.network);
  const RunBy by{collective.chosen, collective.protocol, tip.rival,
                 collective.traffic.network_sent_per_node};
  // The cost is cached only when it is complete: a collective that is too long to simulate throws
  // again at each request.
  const CollectiveCost cost{
      time,
      widened(interval_of(cluster, backend, op, size, request.group, time, by), tip.approximation),
      collective.traffic,
      collective.algorithm,
      collective.protocol,
      tip};
  return costs_.emplace(key, cost).first->second;
}

}  // namespace lambcast
