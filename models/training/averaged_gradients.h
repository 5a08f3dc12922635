// What the ranks average after a backward pass: how many gradients, of which tensors, over whom.
#pragma once

#include "models/training/training_plan.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// Gradients of one rank that are averaged over the ranks with the same parameters.
struct AveragedGradients {
  ProcessGroup ranks;
  double elements = 0;
  double share = 1;         // of the model's tensors, whole or sliced
  int tensor_parallel = 1;  // ranks that divide one side of a matrix
  double bytes = 2;         // of an element that travels as it is
  bool shared = false;      // ranks share states
};

// Of pure data parallelism; of a layout's rank that holds so many elements, as `ranks` do.
AveragedGradients averaged_gradients(const TrainingPlan& training);
AveragedGradients averaged_gradients(const TrainingPlan& training, double elements,
                                     const ProcessGroup& ranks);

}  // namespace lambcast
