// State that a rank keeps between steps for an exchange of gradients (gradient_exchange.h).
#pragma once

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// The part of a rank's gradients that PowerSGD factors: all matrices together.
struct FactoredGradients {
  double rows = 0, columns = 0, matrices = 0, elements = 0;
  // Partial sums of the fused kernel in the matrix that needs most: one for each column and each
  // 256 rows (kernels/cuda/low_rank.cu).
  double most_sums = 0;
};
FactoredGradients factored_of(const ModelShape& model, double rank,
                              const AveragedGradients& gradients);

// Returns the elements of the matrices that PowerSGD of this rank factors; others are all-reduced
// uncompressed.
double factored_elements(const ModelShape& model, double rank);

// Returns the bytes that one rank keeps for the exchange: error feedback (for onebit the server's
// too), PowerSGD's factor, the outer optimizer's weights and momentum, the weights of neighbours.
double exchange_state_bytes(const TrainingPlan& training, const AveragedGradients& gradients);

}  // namespace lambcast
