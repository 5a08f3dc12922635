#include "models/training/price/slowest_rank.h"

#include <cmath>

#include "models/training/price/measured_program.h"
#include "sim/base/check.h"

namespace lambcast {

double expected_largest_of(int normal_numbers) {
  const double n = normal_numbers;
  const double share = (n - 0.375) / (n + 0.25);
  // Phi is monotone: halve the interval that holds the quantile.
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (1 - 0.5 * std::erfc(middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return normal_numbers > 1 ? low : 0;
}

double slowest_over_mean(double spread, std::int64_t micro_batches, int ranks) {
  if (spread == 0) return 1;  // no spread is known of most clusters
  const auto between_sums = static_cast<double>(micro_batches);
  return 1 + spread / std::sqrt(between_sums) * expected_largest_of(ranks);
}

GpuRates rates_of_slowest(const TrainingPlan& training, double off) {
  LAMBCAST_CHECK(training.device->rates, "{} has no rates of kernels", training.device->name);
  const StackSpec& stack = training.cluster->stack;
  const double slowest =
      slowest_over_mean(stack.compute_spread.value, training.batch.gas, training.data_parallel());
  return slowed(*training.device->rates,
                stack.compute_scale.value * level_of(training) * slowest * off);
}

}  // namespace lambcast
