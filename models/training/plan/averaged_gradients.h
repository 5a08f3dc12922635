// What the ranks average after a backward pass: how many gradients, of which tensors, over whom.
#pragma once

#include "models/parallel/rank_parameters.h"
#include "models/training/plan/training_plan.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// Gradients of one rank that are averaged over the ranks with the same parameters.
struct AveragedGradients {
  ProcessGroup ranks;
  double elements = 0;
  // Of the model's tensors, whole or sliced: those outside experts, and those of experts.
  double share = 1, expert_share = 1;
  // Ranks that divide one side of a matrix, and of an expert's.
  int tensor_parallel = 1, expert_tensor_parallel = 1;
  double bytes = 2;     // of an element that travels as it is
  bool shared = false;  // ranks share states

  double share_of(const Tensor& tensor) const { return tensor.expert ? expert_share : share; }
  // The same of a part of them, such as a bucket.
  AveragedGradients part(double of_all) const;
};

// Of pure data parallelism; of what a layout's rank holds, as `ranks` do.
AveragedGradients averaged_gradients(const TrainingPlan& training);
AveragedGradients averaged_gradients(const TrainingPlan& training,
                                     const parallel::RankParameters& held,
                                     const ProcessGroup& ranks);

// The same gradients among those that exchange them: node leaders in two levels.
AveragedGradients exchanged_gradients(const Exchange& exchange, AveragedGradients gradients);

}  // namespace lambcast
