// The mean step of a run, for comparing runs part by part.
#pragma once

#include <span>
#include <utility>

#include "models/training/run/forecast.h"

namespace lambcast {

// Means over the steps of a run. The parts add up to the time.
struct MeanStep {
  double time_us = 0, time_low_us = 0, time_high_us = 0;
  PartTimes parts;
  double wire_bytes_per_gpu = 0;
  // Returns the largest part other than compute, and its share.
  std::pair<PartGroup, double> largest_loss() const;
};

// Weights each kind of step by how often it occurs.
MeanStep mean_step(std::span<const StepForecast> steps);
inline MeanStep mean_step(const Forecast& forecast) { return mean_step(forecast.steps); }

}  // namespace lambcast
