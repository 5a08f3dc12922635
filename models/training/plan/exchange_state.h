// State that a rank keeps between steps for an exchange of gradients (gradient_exchange.h).
#pragma once

#include "models/training/plan/averaged_gradients.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// The part of a rank's gradients that PowerSGD factors: all matrices together.
struct FactoredGradients {
  double rows = 0, columns = 0, matrices = 0, elements = 0;
  // Sums of a column's products that blocks of the fused kernel bring together, one for 256 rows
  // (kernels/cuda/low_rank.cu), in the matrix that needs most of them.
  double most_sums = 0;
};
FactoredGradients factored_of(const ModelShape& model, double rank,
                              const AveragedGradients& gradients);

// Elements of the matrices that PowerSGD of a rank makes smaller; it all-reduces the others whole.
double factored_elements(const ModelShape& model, double rank);

// Returns the bytes that one rank keeps for the exchange: error feedback (onebit: the server's
// too), PowerSGD's factor, the outer optimizer's weights and momentum, the weights of neighbours.
double exchange_state_bytes(const TrainingPlan& training, const AveragedGradients& gradients);

}  // namespace lambcast
