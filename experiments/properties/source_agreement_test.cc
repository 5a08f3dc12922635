// A device may have a training time from two sources: the published training curve of a model, and
// the prices of its kernels by shape. Forecasts of one step from either source must not contradict
// each other.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

// Forecasts one step on one GPU, which has no collectives.
StepForecast step_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  return forecast(training, costs).steps.front();
}

TrainingPlan without_curves(TrainingPlan training) {
  Device device = *training.device;
  device.training_curves.clear();
  training.device = std::make_shared<const Device>(device);
  return training;
}

std::string interval_text(const StepForecast& step) {
  return fmt::format("{:.1f} ms ({:.1f} to {:.1f})", step.step_time_us * 1e-3,
                     step.step_time_low_us * 1e-3, step.step_time_high_us * 1e-3);
}

// Tests the least and the largest micro batch of every curve of every preset whose model ships.
TEST_CASE("source agreement: a training curve and the kernels of one device overlap") {
  int pairs = 0;
  for (const std::string& name : device_names())
    for (const TrainingCurve& curve : load_device(name).training_curves) {
      if (find_model_preset(curve.model) == nullptr) continue;
      for (const double micro_batch : {curve.micro_batch.front(), curve.micro_batch.back()}) {
        WhatIf asked{{"model", curve.model},
                     {"cluster", "commodity-10gbe"},
                     {"device", name},
                     {"gpus", "1"},
                     {"optimizer", "adam"},
                     {"steps", "10"},
                     {"micro_batch", fmt::format("{}", micro_batch)},
                     {"grad_accum", "1"}};
        if (curve.seq_len > 0) asked["seq_len"] = fmt::format("{}", curve.seq_len);
        const TrainingPlan training = resolved(asked).training;
        const StepForecast measured = step_of(training);
        const StepForecast kernels = step_of(without_curves(training));
        INFO(name << ", " << curve_name(curve) << ", micro batch " << micro_batch << ": "
                  << interval_text(measured) << " by the curve, " << interval_text(kernels)
                  << " without it");
        const bool overlap = measured.step_time_low_us <= kernels.step_time_high_us &&
                             kernels.step_time_low_us <= measured.step_time_high_us;
        CHECK(overlap);
        ++pairs;
      }
    }
  CHECK(pairs >= 20);
}

}  // namespace
}  // namespace lambcast
