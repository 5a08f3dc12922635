// The forecast of a whole run: its steps by kind, their sum, its memory, its findings, and the
// sources of all costs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "models/finding.h"
#include "models/training/memory/memory.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"
#include "models/training/run/error_source.h"
#include "models/training/run/step.h"
#include "models/training/run/step_parts.h"

namespace lambcast {

// The mean step of one kind. Under a curriculum or a ramp it is averaged over lengths and batches.
struct StepForecast {
  StepKind kind = StepKind::uniform;
  std::int64_t steps = 0;
  double step_time_us = 0;
  // As in StepMetrics.
  double step_time_low_us = 0, step_time_high_us = 0;
  std::optional<double> coverage = 1;
  bool calibrated = true;
  std::optional<StandIn> stand_in;
  Basis basis = Basis::this_machine;
  double forward_us = 0, backward_us = 0, gradient_comm_us = 0, exposed_comm_us = 0;
  double compress_us = 0, decompress_us = 0, optimizer_us = 0, bubble_us = 0;
  double wire_bytes_per_gpu = 0, inter_node_bytes_per_node = 0, num_collectives = 0;
  double samples_per_s = 0, tokens_per_s = 0, tflops_per_gpu = 0;
};

// Reported figures of the steps of one kind, in the order of rows and files: means over the steps,
// and rates.
struct StepFigure {
  std::string_view name;
  double StepForecast::*value;
  double (*of_step)(
      const StepMetrics& step);  // null for rates, which are computed from other figures
};
std::span<const StepFigure> step_figures();

PartTimes part_times(const StepForecast& step);

struct RunForecast {
  std::int64_t steps = 0;
  double time_s = 0;
  double time_low_s = 0, time_high_s = 0;  // time with all steps at the ends of their intervals
  double samples_per_s = 0;
  double gpu_hours = 0;
  std::optional<double> cost_usd;  // absent without a price
  // Returns the cost of the run if it took `seconds` instead.
  std::optional<double> cost_at(double seconds) const {
    return cost_usd ? std::optional(*cost_usd * seconds / time_s) : std::nullopt;
  }
  double wire_bytes_per_gpu = 0;
  // Comparison with the baseline: the plain optimizer of the same family in an otherwise equal run.
  std::string baseline_optimizer;
  double volume_reduction = 1;
  double speedup_vs_baseline = 1;
  // Interval of the speed-up, in which common errors of both runs cancel (error_source.h); absent
  // for a baseline.
  std::optional<RatioInterval> speedup;
};

struct Forecast {
  std::vector<StepForecast> steps;  // one of each kind
  RunForecast run;
  TimeAtEnds time, plain_time;  // the run, and the baseline
  MemoryForecast memory;
  RunSources sources;
};

Forecast forecast(const TrainingPlan& training, CollectiveCosts& costs);

// Forecasts only the run: without the baseline and the results of a comparison.
Forecast forecast_alone(const TrainingPlan& training, CollectiveCosts& costs);

// Returns only the time of the run, for a ratio.
TimeAtEnds run_time(const TrainingPlan& training, CollectiveCosts& costs);

// Sets the results of a comparison with another run of the same work, called `name`.
void compare_with(const Forecast& other, const std::string& name, Forecast& forecast);

// Returns findings on the run itself, beyond its configuration: it does not fit; communication is
// hardly exposed, so that compression cannot help; compression makes it slower; or its exchange
// overflows the queue of the switch.
std::vector<Finding> judge(const TrainingPlan& training, const Forecast& forecast);

// Returns the run that the speed-up refers to: the same run with the plain optimizer of the family
// and summed gradients.
TrainingPlan plain_run(const TrainingPlan& training);

// Returns the plain optimizer that a 1-bit optimizer is compared with; a plain one is its own.
OptimizerType baseline_of(OptimizerType type);

}  // namespace lambcast
