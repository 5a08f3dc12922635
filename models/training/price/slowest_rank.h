// How much longer a step computes than its mean rank, because gradients are summed once the slowest
// has made its own. n ranks' times of a micro batch are taken to be normal and independent, with a
// relative standard deviation s (stack.compute_spread of a cluster); over m of them between two
// sums
//
//   slowest / mean = 1 + s / sqrt(m) z,   z = Phi^-1((n - 3/8) / (n + 1/4))
//
// with z the expected largest of n standard normal numbers (Blom 1958, Statistical Estimates and
// Transformed Beta-Variables).
#pragma once

#include <cstdint>

#include "models/training/plan/training_plan.h"

namespace lambcast {

double expected_largest_of(int normal_numbers);

double slowest_over_mean(double spread, std::int64_t micro_batches, int ranks);

// Returns the rates of the slowest rank, with kernel times scaled by `off`.
GpuRates rates_of_slowest(const TrainingPlan& training, double off);

}  // namespace lambcast
