#include "experiments/output/mean_step.h"

#include <algorithm>
#include <cstdint>

namespace lambcast {

std::pair<PartGroup, double> MeanStep::largest_loss() const {
  const auto worst = std::max_element(parts.us.begin() + 1, parts.us.end());
  return {static_cast<PartGroup>(worst - parts.us.begin()), *worst / time_us};
}

MeanStep mean_step(std::span<const StepForecast> steps) {
  std::int64_t all = 0;
  for (const StepForecast& step : steps) all += step.steps;
  MeanStep mean;
  for (const StepForecast& step : steps) {
    const double share = static_cast<double>(step.steps) / static_cast<double>(all);
    mean.time_us += share * step.step_time_us;
    mean.time_low_us += share * step.step_time_low_us;
    mean.time_high_us += share * step.step_time_high_us;
    const PartTimes parts = part_times(step);
    for (std::size_t i = 0; i < parts.us.size(); ++i) mean.parts.us[i] += share * parts.us[i];
    mean.wire_bytes_per_gpu += share * step.wire_bytes_per_gpu;
  }
  return mean;
}

}  // namespace lambcast
