// A forecast for people (a table) and for programs (JSON, schema version 1).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/output/judgement.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {

std::string forecast_json(const Scenario& scenario, const Forecast& forecast,
                          const Judgement& judgement);
std::string forecast_table(const Scenario& scenario, const Forecast& forecast,
                           const Judgement& judgement);

// MFU: the FLOPs of the model alone over the GPU's dense peak, of the format that products compute
// in (8 and 4 bits have peaks of their own). Nothing where that is not known, and of fp32 that is
// not priced by kernels.
std::optional<double> flops_utilization(const TrainingPlan& training, double tflops_per_gpu);

// Means over the run. Tokens and MFU are of models that have a sequence.
struct LanguageRates {
  std::optional<double> tokens_per_s, mfu;
  double tflops_per_gpu = 0;
};
LanguageRates language_rates(const TrainingPlan& training, const Forecast& forecast);

// How far each stage may be off, and what that rests on: "step within warmup 7446 to 10164 ms,
// ...".
std::string interval_text(const TrainingPlan& training, const Forecast& forecast);

// A ratio and how far it may be off: "1.24x (1.11 to 1.40x)".
std::string ratio_text(const RatioInterval& ratio);

// Time of a run, however long: "2.9 s", "14 h", "297885 h".
std::string run_time_text(double seconds);

extern const char* const tool_version;

}  // namespace lambcast
