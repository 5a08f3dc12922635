// The mean step of a run, for answers that compare runs part by part.
#pragma once

#include <utility>

#include "models/training/run/forecast.h"

namespace lambcast {

// Means over the steps of a run. The parts add up to the time.
struct MeanStep {
  double time_us = 0, time_low_us = 0, time_high_us = 0;
  PartTimes parts;
  double wire_bytes_per_gpu = 0;
  // Returns the largest part next to compute, and its share.
  std::pair<PartGroup, double> largest_loss() const;
};

MeanStep mean_step(const Forecast& forecast);

}  // namespace lambcast
