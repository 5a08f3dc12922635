// Share of a run's steps that exchange compressed momentum. If it is small, the run's speed-up is
// no evidence about compression.
#pragma once

#include "models/training/run/forecast.h"

namespace lambcast {

// Returns the share of steps that exchange compressed momentum, or nothing at all (0/1 Adam's
// silent steps).
inline double compressed_share(const Forecast& forecast) {
  double steps = 0;
  for (const StepForecast& step : forecast.steps)
    if (step.kind == StepKind::compression || step.kind == StepKind::silent)
      steps += static_cast<double>(step.steps);
  return steps / static_cast<double>(forecast.run.steps);
}

inline constexpr double least_compressed_share = 0.05;

}  // namespace lambcast
