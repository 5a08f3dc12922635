// Ratio of the slowest rank's computation to the mean, which prolongs a step because gradients are
// summed when the slowest rank has computed its own. Times are assumed normal and independent:
//
//   slowest / mean = (1 + s / sqrt(m) z(d)) (1 + g z(n)),   z(k) = Phi^-1((k - 3/8) / (k + 1/4))
//
//   s     relative standard deviation between micro batches (stack.compute_spread), of which m lie
//         between two sums of d data-parallel ranks
//   g     relative standard deviation between GPUs of one kind (stack.gpu_spread), equal in all
//         steps; a step waits for the slowest of all its n GPUs
//   z(k)  expected largest of k standard normal numbers (Blom 1958, Statistical Estimates and
//         Transformed Beta-Variables)
//
// `lambcast survey --profile` measures g. Both are 0 by default, since they are unknown for most
// clusters.
//
// Not modelled: faulty slow machines, and pauses of the host.
#pragma once

#include <cstdint>

#include "models/training/plan/training_plan.h"

namespace lambcast {

double expected_largest_of(int normal_numbers);

double slowest_over_mean(const TrainingPlan& training);

// Returns the rates of the slowest rank, with kernel times scaled by `off`.
GpuRates rates_of_slowest(const TrainingPlan& training, double off);

}  // namespace lambcast
