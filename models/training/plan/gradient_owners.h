// Process groups that sum gradients and share states under a layout. Parameters outside experts are
// replicated on dp cp ranks, and parameters of experts on the tp cp dp / (etp ep) ranks with the
// same experts. Among these, shard_ranks ranks share one copy of the states (ZeRO); all further
// ranks hold further copies. Sources: Megatron-LM core/distributed, expert_data_parallel; DeepSpeed
// utils/groups.py.
#pragma once

#include <vector>

#include "models/parallel/rank_parameters.h"
#include "models/training/plan/parallelism.h"
#include "models/training/plan/step_part.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// The ranks that share states, and the ranks with copies of one share.
struct ShardGroups {
  ProcessGroup shard, copies;
};

// Divides `replicas` into groups of `shard_ranks`, which must divide their number; groups are
// filled within a node first.
ShardGroups shard_groups(const ProcessGroup& replicas, int shard_ranks);

// Returns the group of the first ranks of every node.
ProcessGroup node_leaders(const ProcessGroup& ranks);

// Ranks that hold the same parameters, either of experts or all others. Gradients are summed over
// `replicas`; `shards` share the states.
struct Owners {
  bool of_experts = false;
  ProcessGroup replicas;
  ShardGroups shards;

  double of(const parallel::RankParameters& held) const {
    return of_experts ? held.experts : held.total() - held.experts;
  }
  // Returns the part of `held` in experts, or the part outside them.
  parallel::RankParameters part_of(const parallel::RankParameters& held) const {
    return of_experts ? parallel::RankParameters{.experts = held.experts}
                      : parallel::RankParameters{.divided = held.divided, .whole = held.whole};
  }
};

// Whether ranks that share states or gradients sum whole gradients and keep their share, as
// DeepSpeed's stages 1 and 2 do (gradient_reduction.h), instead of scattering them.
bool keeps_share_of_sum(const Parallelism& how);

// Returns the collectives that sum `bytes` of gradients over the ranks of one of `sites` sites:
// all_reduce, or reduce_scatter if ranks share states, and all_reduce between copies.
std::vector<StepPart> gradient_sums(const Parallelism& how, const Owners& owners, int sites,
                                    Bytes bytes);

// Returns the owners of parameters outside experts, then those of experts if the model has experts.
// Siblings do not differ in the axes of `apart`: stages reduce gradients at different times after
// their passes (nic_sharing.h), but all stages are busy during the passes.
std::vector<Owners> owners_of(const Parallelism& how, bool with_experts,
                              parallel::AxisSet apart = {parallel::Axis::pp});

}  // namespace lambcast
