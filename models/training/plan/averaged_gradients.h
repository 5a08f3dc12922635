// Gradients that ranks average after a backward pass: the elements, the tensors and the process
// group.
#pragma once

#include "models/parallel/rank_parameters.h"
#include "models/training/plan/training_plan.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// Gradients of one rank that are averaged over the ranks with the same parameters.
struct AveragedGradients {
  ProcessGroup ranks;
  double elements = 0;
  // Shares of the model's tensors, whole or sliced: tensors outside experts, and tensors of
  // experts.
  double share = 1, expert_share = 1;
  // Ranks that divide one side of a matrix, and of an expert's.
  int tensor_parallel = 1, expert_tensor_parallel = 1;
  double bytes = 2;     // of an element that travels as it is
  bool shared = false;  // ranks share states

  double share_of(const Tensor& tensor) const { return tensor.expert ? expert_share : share; }
  // The same of a part of them, such as a bucket.
  AveragedGradients part(double of_all) const;
};

// Gradients under pure data parallelism, or those of the parameters `held` by a layout's rank,
// averaged over `ranks`.
AveragedGradients averaged_gradients(const TrainingPlan& training);
AveragedGradients averaged_gradients(const TrainingPlan& training,
                                     const parallel::RankParameters& held,
                                     const ProcessGroup& ranks);

// The same gradients, or a share of them, among those that exchange them (exchange_levels.h).
AveragedGradients exchanged_gradients(const Exchange& exchange, AveragedGradients gradients);

}  // namespace lambcast
