// How much longer a step computes than its mean rank, because gradients are summed once the slowest
// has made its own. Times are taken to be normal and independent:
//
//   slowest / mean = (1 + s / sqrt(m) z(d)) (1 + g z(n)),   z(k) = Phi^-1((k - 3/8) / (k + 1/4))
//
//   s     relative standard deviation of one micro batch against the next
//         (stack.compute_spread), of which m lie between two sums of d data-parallel ranks
//   g     the same of one GPU against another of its kind (stack.gpu_spread), in every step; a step
//         waits for the slowest of all its n GPUs
//   z(k)  expected largest of k standard normal numbers (Blom 1958, Statistical Estimates and
//         Transformed Beta-Variables)
//
// `lambcast survey --profile` measures g. Nothing is known of most clusters, so both are 0 there.
//
// Not modelled: machines that are slow by a fault, and pauses of the host.
#pragma once

#include <cstdint>

#include "models/training/plan/training_plan.h"

namespace lambcast {

double expected_largest_of(int normal_numbers);

double slowest_over_mean(const TrainingPlan& training);

// Returns the rates of the slowest rank, with kernel times scaled by `off`.
GpuRates rates_of_slowest(const TrainingPlan& training, double off);

}  // namespace lambcast
