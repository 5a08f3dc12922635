#include "models/training/plan/gradient_owners.h"

#include <algorithm>

namespace lambcast {

using parallel::Axis;

ShardGroups shard_groups(const ProcessGroup& replicas, int shard_ranks) {
  const int outside = replicas.ranks / shard_ranks;
  if (outside == 1) return {replicas, {1, 1, 1, 1, 1}};
  ShardGroups groups{replicas, replicas};
  groups.shard.ranks = shard_ranks;
  groups.copies.ranks = outside;
  if (shard_ranks <= replicas.per_node) {
    const int on_node = replicas.per_node / shard_ranks;
    groups.shard.per_node = shard_ranks;
    groups.shard.siblings = replicas.siblings * on_node;
    groups.copies.per_node = on_node;
    groups.copies.stride = replicas.stride * shard_ranks;
    groups.copies.siblings = replicas.siblings * shard_ranks;
  } else {
    groups.copies.per_node = 1;
    groups.copies.stride = 1;
    groups.copies.node_stride = replicas.node_stride * (shard_ranks / replicas.per_node);
    groups.copies.siblings = replicas.siblings * replicas.per_node;
  }
  return groups;
}

ProcessGroup node_leaders(const ProcessGroup& ranks) {
  return {ranks.nodes(), 1, 1, ranks.node_stride, ranks.siblings};
}

bool keeps_share_of_sum(const Parallelism& how) {
  const bool weights_whole = how.sharding == parallel::Sharding::optimizer ||
                             how.sharding == parallel::Sharding::gradients;
  return weights_whole && how.framework.name == FrameworkName::deepspeed &&
         how.shard_ranks == how.replicas();
}

std::vector<StepPart> gradient_sums(const Parallelism& how, const Owners& owners, int sites,
                                    Bytes bytes) {
  const std::string of = owners.of_experts ? " of experts" : "";
  std::vector<StepPart> parts;
  const auto add = [&](const std::string& name, const ProcessGroup& group, Op op, double sent) {
    if (const auto made = some(call(group, op, sent)))
      parts.push_back({name, Category::gradient_comm, *made});
  };
  const bool scatters =
      how.sharding != parallel::Sharding::none && !how.full_all_reduce && !keeps_share_of_sum(how);
  if (scatters) {
    const ShardGroups& shards = owners.shards;
    add("reduce_scatter gradients" + of, shards.shard, Op::reduce_scatter, bytes.value());
    add("all_reduce gradients" + of + " between copies", shards.copies, Op::all_reduce,
        bytes.value() / shards.shard.ranks);
  } else {
    add("all_reduce gradients" + of,
        shard_groups(owners.replicas, owners.replicas.ranks / sites).shard, Op::all_reduce,
        bytes.value());
  }
  return parts;
}

std::vector<Owners> owners_of(const Parallelism& how, bool with_experts, parallel::AxisSet apart) {
  const ProcessGroup dense =
      parallel::group(parallel::dense_grid(how.layout), {Axis::dp, Axis::cp, Axis::ep}, apart);
  std::vector<Owners> owners{{false, dense, shard_groups(dense, std::max(1, how.shard_ranks))}};
  if (!with_experts) return owners;
  const ProcessGroup experts =
      parallel::group(parallel::expert_grid(how.layout), {Axis::dp}, apart);
  owners.push_back({true, experts, shard_groups(experts, how.expert_shard_ranks())});
  return owners;
}

}  // namespace lambcast
