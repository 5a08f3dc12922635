#include "experiments/phases/run_totals.h"

#include <algorithm>

#include "experiments/output/forecast_output.h"
#include "models/training/plan/distinct_steps.h"

namespace lambcast {
namespace {

// Adds the cost sources of a phase, each with the time that depends on it instead of a share.
void add_phase_sources(const Forecast& forecast, std::vector<CostSource>& sources) {
  for (CostSource source : forecast.sources.shares()) {
    source.share *= forecast.run.time_s;
    const auto known = std::ranges::find(sources, source.cost, &CostSource::cost);
    if (known == sources.end())
      sources.push_back(std::move(source));
    else
      known->share += source.share;
  }
}

}  // namespace

RunTotals totals_of(const PhasedRun& run) {
  RunTotals totals;
  double tokens = 0, samples = 0, tflop = 0, used = 0, gpu_s = 0, steps_s = 0;
  bool has_tokens = true, has_mfu = true;
  for (const RunPhase& phase : run.phases) {
    const TrainingPlan& training = phase.scenario.training;
    const LanguageRates rates = language_rates(training, phase.forecast);
    const double of_steps = phase.forecast.run.time_s;
    samples += static_cast<double>(samples_of(training));
    tokens += rates.tokens_per_s.value_or(0) * of_steps;
    tflop += rates.tflops_per_gpu * of_steps * training.gpus;
    used += rates.mfu.value_or(0) * of_steps * training.gpus;
    has_tokens = has_tokens && rates.tokens_per_s;
    has_mfu = has_mfu && rates.mfu;
    gpu_s += phase.time_s() * training.gpus;
    steps_s += of_steps;
    if (totals.largest == nullptr ||
        phase.forecast.memory.peak > totals.largest->forecast.memory.peak)
      totals.largest = &phase;
    add_phase_sources(phase.forecast, totals.sources);
  }
  totals.samples_per_s = samples / run.time_s;
  totals.tflops_per_gpu = tflop / gpu_s;
  if (has_tokens) totals.tokens_per_s = tokens / run.time_s;
  if (has_mfu) totals.mfu = used / gpu_s;
  for (CostSource& source : totals.sources) source.share /= steps_s;
  return totals;
}

}  // namespace lambcast
