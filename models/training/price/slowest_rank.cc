#include "models/training/price/slowest_rank.h"

#include <cmath>

#include "models/training/price/measured_program.h"
#include "sim/base/check.h"

namespace lambcast {

double expected_largest_of(int normal_numbers) {
  const double n = normal_numbers;
  const double share = (n - 0.375) / (n + 0.25);
  // Bisection: Phi is monotone.
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (1 - 0.5 * std::erfc(middle / std::sqrt(2.0)) < share ? low : high) = middle;
  }
  return normal_numbers > 1 ? low : 0;
}

double slowest_over_mean(const TrainingPlan& training) {
  const StackSpec& stack = training.cluster->stack;
  double slowest = 1;
  if (stack.compute_spread.value > 0)
    slowest += stack.compute_spread.value / std::sqrt(static_cast<double>(training.batch.gas)) *
               expected_largest_of(training.data_parallel());
  if (stack.gpu_spread.value > 0)
    slowest *= 1 + stack.gpu_spread.value * expected_largest_of(training.gpus);
  return slowest;
}

GpuRates rates_of_slowest(const TrainingPlan& training, double off) {
  LAMBCAST_CHECK(training.device->rates, "{} has no rates of kernels", training.device->name);
  GpuRates rates =
      slowed(*training.device->rates, training.cluster->stack.compute_scale.value *
                                          level_of(training) * slowest_over_mean(training) * off);
  if (training.program) {
    const KindLevels& kinds = training.program->kinds;
    rates.piece_factors = {kinds.products, kinds.attention, kinds.element_wise};
  }
  return rates;
}

}  // namespace lambcast
