// The parameters that one rank of each pipeline stage holds, and the ranks that hold or share the
// same ones. Pure data parallelism is one stage whose ranks all hold the whole model.
#pragma once

#include <vector>

#include "models/parallel/rank_parameters.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

struct StageRanks {
  parallel::RankGrid grid;
  parallel::Pipeline pipeline;
  std::vector<parallel::RankParameters> chunks;  // by position
  std::vector<Owners> owners;  // owners of parameters outside experts, then of experts

  const parallel::RankParameters& of(int stage, int chunk) const {
    return chunks[static_cast<std::size_t>(pipeline.position(stage, chunk))];
  }
  parallel::RankParameters of(int stage) const;

  // Ranks with the same parameters outside experts, and the groups of them that share states.
  const ProcessGroup& replicas() const { return owners.front().replicas; }
  const ShardGroups& shards() const { return owners.front().shards; }
  // Returns the place of the first rank of each stage.
  std::vector<Place> places() const;
  // Returns the ranks that divide the tensors of one copy of a stage.
  ProcessGroup tensor_ranks() const { return parallel::group(grid, {parallel::Axis::tp}); }
  // Returns the number of sites of local steps; each sums its gradients in every step.
  int sites(const Exchange& exchange) const;
};

StageRanks stage_ranks(const TrainingPlan& training);

}  // namespace lambcast
