#include "experiments/advise/exchange_advice.h"

#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_reduction.h"
#include "sim/base/sort_stably.h"

namespace lambcast {

ExchangeAdvice advise_exchange(const std::string& name, const WhatIf& asked, Bandwidth fastest,
                               Catalog& catalog, CollectiveCosts& costs) {
  const TrainingPlan training = resolve(asked, catalog).training;
  ExchangeAdvice advice = exchange_advice_of(name, forecast(training, costs));
  if (training.parallelism && training.parallelism->quantized_gradients) advice.kernels_us.reset();
  if (training.nodes() > 1 && advice.fits && training.exchange != Exchange{})
    advice.pays = break_even(asked, catalog, costs, fastest);
  return advice;
}

ExchangeAdvice exchange_advice_of(std::string name, const Forecast& forecast) {
  ExchangeAdvice advice{.name = std::move(name)};
  const MeanStep step = mean_step(forecast);
  advice.wire_bytes = step.wire_bytes_per_gpu;
  advice.wire_us = step.parts[PartGroup::wire];
  advice.kernels_us = step.parts[PartGroup::compression];
  advice.step_us = step.time_us;
  advice.run_s = forecast.run.time_s;
  advice.run_low_s = forecast.run.time_low_s;
  advice.run_high_s = forecast.run.time_high_s;
  if (forecast.run.speedup) advice.speedup = *forecast.run.speedup;
  advice.peak = forecast.memory.peak;
  advice.fits = forecast.memory.fits;
  return advice;
}

std::vector<ExchangeAdvice> advise_exchanges(const WhatIf& what_if,
                                             const std::vector<ExchangeAdvice>& onebit,
                                             Catalog& catalog, CollectiveCosts& costs) {
  std::vector<ExchangeAdvice> all;
  const TrainingPlan own = resolve(what_if, catalog).training;
  const bool zero = own.recipe.zero.stage > 0;
  const int site = own.parallelism || own.nodes() == 1 ? 1 : own.gpus_per_node;
  const Bandwidth fastest = fastest_of_use(what_if, catalog, costs);
  std::vector<Exchange> usual = usual_exchanges(zero, site);
  if (!zero && gradient_bytes(own) == 4) usual.push_back({ExchangeKind::fp16});
  for (const Exchange& exchange : usual) {
    if (exchange.is_in_other_form() && (own.nodes() == 1 || exchanges_in_hooks(own))) continue;
    if (exchange.is_sharded() && own.gpus_per_node == 1) continue;
    WhatIf asked = what_if;
    asked["exchange"] = name_of(exchange);
    try {
      all.push_back(advise_exchange(name_of(exchange), asked, fastest, catalog, costs));
    } catch (const Error& error) {
      if (exchange == Exchange{}) throw;
      all.push_back({.name = name_of(exchange), .refused = error.what()});
    }
  }
  all.insert(all.end(), onebit.begin(), onebit.end());
  sort_stably(all, [](const ExchangeAdvice& a, const ExchangeAdvice& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.run_s < b.run_s;
  });
  return all;
}

}  // namespace lambcast
