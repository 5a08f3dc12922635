// Formats a forecast as text (a table) and JSON (schema version 1).
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

// MFU: the model's FLOPs per second over the GPU's dense peak for the format of the products (8 and
// 4 bits have their own peaks). Absent if that peak is not known, and for fp32 that is not priced
// by kernels.
std::optional<double> flops_utilization(const TrainingPlan& training, double tflops_per_gpu);

// Means over the run. Tokens and MFU exist only for models with a sequence.
struct LanguageRates {
  std::optional<double> tokens_per_s, mfu;
  double tflops_per_gpu = 0;
};
LanguageRates language_rates(const TrainingPlan& training, const Forecast& forecast);

// Formats the interval of each stage and its source: "step within warmup 7446 to 10164 ms, ...".
std::string interval_text(const TrainingPlan& training, const Forecast& forecast);

// Formats a ratio and its interval: "1.24x (1.11 to 1.40x)".
std::string ratio_text(const RatioInterval& ratio);

// Formats the time of a run of any length: "2.9 s", "14 h", "297885 h".
std::string run_time_text(double seconds);

extern const char* const tool_version;

}  // namespace lambcast
