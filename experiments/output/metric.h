// Metrics of a forecast by name: "speedup", "run_time", "cost". Each has a value, an interval if
// the forecast has one, and functions that parse and print it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/training/plan/training_plan.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"

namespace lambcast {

struct MetricValue {
  double value = 0;
  std::optional<double> low, high;
};

struct Metric {
  std::string_view name, unit, help;
  bool less_is_better;
  // Returns nothing if the run has no such metric: no price, no compression, no tokens.
  std::optional<MetricValue> (*of)(const TrainingPlan& training, const Forecast& forecast);
  double (*parse)(std::string_view text, const Where& where);
  std::string (*text)(double value);  // in a sentence: "20 min"
  std::string (*cell)(double value);  // in a column: "20.00 min"
};

std::span<const Metric> metrics();

// Returns the metric of that name. Throws Error (usage) with a suggestion for an unknown name.
const Metric& find_metric(std::string_view name, const Where& where);

}  // namespace lambcast
