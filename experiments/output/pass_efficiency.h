// Interval of the share of a step that a layout spends computing, from the errors of computation.
// The passes are priced with every computation at either end of its interval
// (models/training/price/interval.h). A step takes t and computes for u. If its passes take p
// longer and compute for c more, the share is
//
//   (u + c) / (t + p)
//
// The bubble of a pipeline grows with computation, so an error of computation nearly cancels.
#pragma once

#include "models/training/plan/training_plan.h"
#include "models/training/price/interval.h"

namespace lambcast {

// Returns the share with passes at `end`. In the mean step of `step_s` the run computes for the
// share `useful`.
double efficiency_with_passes_at(End end, const TrainingPlan& training, double useful,
                                 double step_s);

// Errors as logarithms, below and above.
struct PassError {
  double below = 0, above = 0;
};
PassError pass_error(const TrainingPlan& training, double useful, double step_s);

}  // namespace lambcast
