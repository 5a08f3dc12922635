// How far the share of a step in which a layout computes may be off by its passes. They are priced
// with every computation, and with every collective inside them, at either end of its interval
// (models/training/price/interval.h); of a step of t that computes for u, passes that are p longer
// and compute for c more make it
//
//   (u + c) / (t + p)
//
// A pipeline's bubble grows with what is computed, so that an error of computation nearly cancels;
// collectives that nothing hides take their share from it.
#pragma once

#include "models/training/plan/training_plan.h"
#include "models/training/price/interval.h"

namespace lambcast {

// The share with passes at `end`, of a run whose mean step of `step_s` computes for `useful` of it.
double efficiency_with_passes_at(End end, const TrainingPlan& training, double useful,
                                 double step_s);

// The logarithms of both errors together, below and above: the two err apart.
struct PassError {
  double below = 0, above = 0;
};
PassError pass_error(const TrainingPlan& training, double useful, double step_s);

}  // namespace lambcast
