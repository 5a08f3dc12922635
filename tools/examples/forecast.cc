// One step of 1-bit LAMB, forecast in C++: the work of `lambcast simulate` in twenty lines.
#include <fmt/format.h>

#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

int main() {
  using namespace lambcast;
  Catalog catalog;
  const WhatIf what_if{{"model", "bert-large"}, {"cluster", "commodity-10gbe"},
                       {"gpus", "32"},          {"optimizer", "onebit_lamb"},
                       {"micro_batch", "64"},   {"global_batch", "65536"},
                       {"steps", "5993"},       {"freeze_step", "1000"}};
  const Scenario scenario = resolve(what_if, catalog);
  CollectiveCosts costs;
  const Forecast forecast = lambcast::forecast(scenario.training, costs);
  for (const StepForecast& step : forecast.steps)
    fmt::print("{:<12} {:>6} steps of {:>8.1f} ms\n", name_of(step.kind), step.steps,
               step.step_time_us / 1000);
  fmt::print("the run is {:.2f} times as fast as with {}\n", forecast.run.speedup_vs_baseline,
             forecast.run.baseline_optimizer);
}
