#include "models/training/measured_program.h"

#include <cmath>

namespace lambcast {
namespace {

constexpr double claimed = 0.9;
constexpr double ends_of_90_percent = 1.645;  // standard deviations of a normal distribution

}  // namespace

double level_of(const TrainingPlan& training) {
  return training.program ? training.program->level.value : 1;
}

ComputeWidth width_of_passes(const TrainingPlan& training, const ComputeWidth& otherwise) {
  if (!training.program) return otherwise;
  const double of_level = std::log(training.program->high / training.program->low) / 2;
  return {std::hypot(of_level, ends_of_90_percent * run_spread), claimed};
}

ComputeWidth width_of_passes(const TrainingPlan& training) {
  return width_of_passes(training, rates_width(training.device->rates->held_out));
}

}  // namespace lambcast
