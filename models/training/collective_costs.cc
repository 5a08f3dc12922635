#include "models/training/collective_costs.h"

#include <algorithm>

namespace lambcast {
namespace {

const LibrarySpec& library_of(const Cluster& cluster, Channel channel) {
  return channel == Channel::nccl ? cluster.nccl : cluster.mpi;
}

}  // namespace

CollectiveCosts::Shape& CollectiveCosts::shape(const Group& group, Channel channel) {
  std::unique_ptr<Shape>& shape = shapes_[{group, channel}];
  if (shape == nullptr) {
    const LibrarySpec& library = library_of(*group.cluster, channel);
    const int nodes = (group.gpus + group.gpus_per_node - 1) / group.gpus_per_node;
    shape = std::make_unique<Shape>();
    shape->machines = machines_of(*group.cluster, library, nodes, group.gpus_per_node);
    shape->transport = transport_of(*group.cluster, library,
                                    channel == Channel::mpi_host ? Endpoint::host : Endpoint::gpu);
  }
  return *shape;
}

const CollectiveCost& CollectiveCosts::cost(const Group& group, Channel channel, Op op, Bytes size,
                                            const std::string& algorithm) {
  const auto [entry, is_new] = costs_.try_emplace({group, channel, op, size.value(), algorithm});
  CollectiveCost& cost = entry->second;
  if (!is_new) return cost;
  const LibrarySpec& library = library_of(*group.cluster, channel);
  Shape& on = shape(group, channel);
  CollectiveRequest request;
  request.op = op;
  request.size = size;
  request.layout = {group.gpus, group.gpus_per_node,
                    std::min(nics_in_use(*group.cluster, group.gpus_per_node), group.gpus_per_node),
                    false};
  request.library = library.library;
  request.algorithm = algorithm;
  // A file that forces an algorithm for all_reduce means the ones that can use it.
  if (algorithm.empty() && op == Op::all_reduce && request.layout.nodes() > 1)
    request.algorithm = library.all_reduce;
  request.expand = group.expand;
  const Collective collective = plan_collective(request, on.machines, on.transport);
  const bool analytic = group.network == NetworkModel::analytic && !group.expand;
  const Duration time = analytic ? collective.time : simulate(collective, group.network);
  cost = {time,
          interval_of(*group.cluster, channel != Channel::nccl, op, size, request.layout, time),
          collective.traffic, collective.algorithm, collective.protocol};
  return cost;
}

}  // namespace lambcast
