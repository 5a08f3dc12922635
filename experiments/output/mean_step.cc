#include "experiments/output/mean_step.h"

#include <algorithm>

namespace lambcast {

std::pair<PartGroup, double> MeanStep::largest_loss() const {
  const auto worst = std::max_element(parts.us.begin() + 1, parts.us.end());
  return {static_cast<PartGroup>(worst - parts.us.begin()), *worst / time_us};
}

MeanStep mean_step(const Forecast& forecast) {
  MeanStep mean;
  for (const StepForecast& step : forecast.steps) {
    const double share = static_cast<double>(step.steps) / static_cast<double>(forecast.run.steps);
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
