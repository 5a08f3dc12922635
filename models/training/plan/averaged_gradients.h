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
  // Shares of the model's tensors that these gradients cover: of tensors outside experts, and of
  // experts. A slice of a tensor counts as a tensor.
  double share = 1, expert_share = 1;
  // Numbers of ranks that divide one side of a matrix outside experts, and of an expert's matrix.
  int tensor_parallel = 1, expert_tensor_parallel = 1;
  double bytes = 2;     // bytes per uncompressed element
  bool shared = false;  // whether ranks share optimizer states

  double share_of(const Tensor& tensor) const { return tensor.expert ? expert_share : share; }
  // Returns the gradients of a part of the elements, such as a bucket.
  AveragedGradients part(double of_all) const;
};

// Returns the gradients under pure data parallelism, or those of the parameters `held` by a
// layout's rank, averaged over `ranks`.
AveragedGradients averaged_gradients(const TrainingPlan& training);
AveragedGradients averaged_gradients(const TrainingPlan& training,
                                     const parallel::RankParameters& held,
                                     const ProcessGroup& ranks);

// Returns the gradients, or the share of them, that each exchanging rank sends, and the ranks that
// exchange them (exchange_levels.h).
AveragedGradients exchanged_gradients(const Exchange& exchange, AveragedGradients gradients);

}  // namespace lambcast
