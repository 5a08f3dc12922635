#include "experiments/exchange_advice.h"

#include <algorithm>

#include "experiments/comparison.h"
#include "experiments/scenario.h"
#include "models/training/exchange.h"

namespace lambcast {
namespace {

ExchangeAdvice advice_of(std::string name, const WhatIf& asked, Catalog& catalog) {
  ExchangeAdvice advice{.name = std::move(name)};
  const Scenario scenario = resolve(asked, catalog);
  CollectiveCosts costs;
  const Forecast of = forecast(scenario.training, costs);
  const MeanStep step = mean_step(of);
  advice.wire_bytes = step.wire_bytes_per_gpu;
  advice.wire_us = step.wire_us;
  advice.kernels_us = step.compression_us;
  advice.step_us = step.time_us;
  advice.run_s = of.run.time_s;
  advice.speedup = of.run.speedup_vs_baseline;
  advice.peak = of.memory.peak;
  advice.fits = of.memory.fits;
  const bool plain =
      scenario.training.exchange == Exchange{} && !is_onebit(scenario.training.optimizer());
  if (scenario.training.nodes() > 1 && !plain) advice.pays = break_even(asked, catalog);
  return advice;
}

}  // namespace

std::vector<ExchangeAdvice> advise_exchanges(const WhatIf& what_if,
                                             const std::optional<WhatIf>& onebit,
                                             Catalog& catalog) {
  std::vector<ExchangeAdvice> all;
  for (const Exchange& exchange : usual_exchanges()) {
    WhatIf asked = what_if;
    asked["exchange"] = name_of(exchange);
    try {
      all.push_back(advice_of(name_of(exchange), asked, catalog));
    } catch (const Error& error) {
      if (exchange == Exchange{}) throw;
      all.push_back({.name = name_of(exchange), .refused = error.what()});
    }
  }
  if (onebit) {
    const OptimizerType type = resolve(*onebit, catalog).training.optimizer();
    all.push_back(advice_of(std::string(name_of(type)), *onebit, catalog));
  }
  std::ranges::stable_sort(all, [](const ExchangeAdvice& a, const ExchangeAdvice& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.run_s < b.run_s;
  });
  return all;
}

}  // namespace lambcast
