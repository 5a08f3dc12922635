#include "experiments/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/numeric_inputs.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

struct Outcome {
  double x = 0;  // of the input, or its factor
  double time_s = 0, speedup = 1;
};

Outcome outcome_of(double x, const TrainingPlan& training) {
  CollectiveCosts costs;
  const RunForecast run = forecast(training, costs).run;
  return {x, run.time_s, run.speedup_vs_baseline};
}

InputEffect effect(std::string key, std::string value, bool compresses, const Outcome& low,
                   const Outcome& high) {
  const double distance = std::log(high.x / low.x);
  InputEffect effect{std::move(key), std::move(value), {}, 0, {}};
  effect.time_elasticity = std::log(high.time_s / low.time_s) / distance;
  if (compresses) effect.speedup_elasticity = std::log(high.speedup / low.speedup) / distance;
  return effect;
}

// The question with every number that the choices below change said outright.
WhatIf spelled_out(const Scenario& scenario) {
  const TrainingPlan& training = scenario.training;
  WhatIf what_if = scenario.asked;
  for (const char* key : {"nodes", "samples", "grad_accum"}) what_if.erase(key);
  const auto say = [&](const char* key, std::int64_t value) {
    what_if.insert_or_assign(key, std::to_string(value));
  };
  say("gpus", training.gpus);
  say("global_batch", training.batch.train);
  say("micro_batch", training.batch.micro);
  say("steps", training.steps);
  if (training.seq_len > 0) say("seq_len", training.seq_len);
  if (const auto freeze_step = freeze_step_of(training)) say("freeze_step", *freeze_step);
  return what_if;
}

std::optional<Outcome> outcome_with(const WhatIf& base, const std::string& key, std::int64_t value,
                                    Catalog& catalog) {
  WhatIf what_if = base;
  what_if.insert_or_assign(key, std::to_string(value));
  try {
    return outcome_of(static_cast<double>(value), resolve(what_if, catalog).training);
  } catch (const Error& error) {
    if (error.code() != Exit::usage) throw;
    return std::nullopt;
  }
}

void add_choices(Sensitivity& result, Catalog& catalog) {
  const WhatIf base = spelled_out(result.scenario);
  const RunForecast& run = result.forecast.run;
  for (const char* key : {"gpus", "global_batch", "micro_batch", "seq_len", "freeze_step"}) {
    const auto said = base.find(key);
    if (said == base.end()) continue;
    const std::int64_t value = std::stoll(said->second);
    // freeze_step counts steps: it moves as finely as the numbers do.
    const bool fine = std::string_view(key) == "freeze_step";
    const auto moved = static_cast<std::int64_t>(
        std::llround(static_cast<double>(value) * (fine ? 1 + result.by : 2.0)));
    const std::int64_t lower = fine ? 2 * value - moved : value / 2;
    const Outcome here{static_cast<double>(value), run.time_s, run.speedup_vs_baseline};
    const auto low = lower > 0 && (fine || value % 2 == 0) ? outcome_with(base, key, lower, catalog)
                                                           : std::nullopt;
    const auto high = moved > value ? outcome_with(base, key, moved, catalog) : std::nullopt;
    if (low || high)
      result.effects.push_back(effect(key, said->second,
                                      is_onebit(result.scenario.training.optimizer()),
                                      low.value_or(here), high.value_or(here)));
    else
      result.fixed.emplace_back(key);
  }
}

}  // namespace

const InputEffect* Sensitivity::to_measure() const {
  const auto unmeasured = std::ranges::find_if(effects, [](const InputEffect& effect) {
    return effect.provenance && effect.provenance->kind != Kind::measured &&
           std::abs(effect.time_elasticity) > no_effect;
  });
  return unmeasured == effects.end() ? nullptr : &*unmeasured;
}

Sensitivity sensitivity_of(const WhatIf& what_if, double by, Catalog& catalog) {
  Sensitivity result;
  result.by = by;
  result.scenario = resolve(what_if, catalog);
  const TrainingPlan& training = result.scenario.training;
  CollectiveCosts costs;
  result.forecast = forecast(training, costs);
  const bool compresses = is_onebit(training.optimizer());
  for (const NumericInput& input : numeric_inputs(training)) {
    result.effects.push_back(effect(input.key, input.value, compresses,
                                    outcome_of(1 - by, scaled(training, input, 1 - by)),
                                    outcome_of(1 + by, scaled(training, input, 1 + by))));
    result.effects.back().provenance = input.provenance;
  }
  add_choices(result, catalog);
  std::ranges::stable_sort(result.effects, std::ranges::greater(), [](const InputEffect& effect) {
    return std::abs(effect.time_elasticity);
  });
  return result;
}

}  // namespace lambcast
