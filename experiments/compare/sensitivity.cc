#include "experiments/compare/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "experiments/compare/numeric_inputs.h"
#include "experiments/output/measure_first.h"
#include "experiments/scenario/run_length.h"
#include "sim/base/error.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

struct Outcome {
  double x = 0;  // value of the input, or its factor
  double time_s = 0, speedup = 1;
  std::array<double, error_sources> width_s = {};  // widths for the run and for the plain run
};

Outcome outcome_of(double x, const Forecast& forecast) {
  Outcome outcome{x, forecast.run.time_s, forecast.run.speedup_vs_baseline};
  for (const TimeAtEnds* time : {&forecast.time, &forecast.plain_time})
    for (std::size_t i = 0; i < error_sources; ++i)
      outcome.width_s[i] += time->at[i].high_s - time->at[i].low_s;
  return outcome;
}

Outcome outcome_of(double x, const TrainingPlan& training) {
  CollectiveCosts costs;
  return outcome_of(x, forecast(training, costs));
}

InputEffect effect(std::string key, std::string value, bool judged, const Outcome& low,
                   const Outcome& high) {
  const double distance = std::log(high.x / low.x);
  InputEffect effect{std::move(key), std::move(value), {}, 0, {}, {}, {}};
  effect.time_elasticity = std::log(high.time_s / low.time_s) / distance;
  if (judged) effect.speedup_elasticity = std::log(high.speedup / low.speedup) / distance;
  return effect;
}

// Returns the source of error whose width differs most between the two outcomes.
std::optional<std::size_t> source_between(const Outcome& low, const Outcome& high) {
  std::size_t widest = 0;
  const auto change = [&](std::size_t i) { return std::abs(high.width_s[i] - low.width_s[i]); };
  for (std::size_t i = 1; i < error_sources; ++i)
    if (change(i) > change(widest)) widest = i;
  return change(widest) > no_effect * low.time_s ? std::optional(widest) : std::nullopt;
}

// Returns each source's share of the interval. Sources add in squares of logarithms.
std::vector<IntervalPart> parts_of(const Forecast& forecast) {
  std::array<IntervalPart, error_sources> all;
  for (std::size_t i = 0; i < error_sources; ++i) {
    const TimeAtEnds::Ends& ends = forecast.time.at[i];
    all[i].source = i;
    all[i].time_low_s = std::min(ends.low_s, ends.high_s);
    all[i].time_high_s = std::max(ends.low_s, ends.high_s);
    all[i].time_share = std::pow(std::log(all[i].time_high_s / all[i].time_low_s), 2);
  }
  if (forecast.run.speedup)
    for (const ErrorShare& of : forecast.run.speedup->shares) {
      IntervalPart& part = all[of.source];
      part.speedup_low = of.low;
      part.speedup_high = of.high;
      part.speedup_share = std::pow(std::log(of.high / of.low), 2);
    }
  std::vector<IntervalPart> parts;
  for (double IntervalPart::*share : {&IntervalPart::time_share, &IntervalPart::speedup_share}) {
    double sum = 0;
    for (const IntervalPart& part : all) sum += part.*share;
    if (sum > 0)
      for (IntervalPart& part : all) part.*share /= sum;
  }
  for (const IntervalPart& part : all)
    if (part.time_share > 0 || part.speedup_share > 0) parts.push_back(part);
  return parts;
}

// Returns the question with explicit values for all numbers that the choices below change.
WhatIf spelled_out(const Scenario& scenario) {
  const TrainingPlan& training = scenario.training;
  WhatIf what_if = scenario.asked;
  for (const char* key : {"nodes", "grad_accum"}) what_if.erase(key);
  for (const char* key : length_keys) what_if.erase(key);
  const auto say = [&](const char* key, std::int64_t value) {
    what_if.insert_or_assign(key, std::to_string(value));
  };
  say("gpus", training.gpus);
  say("global_batch", training.batch.train);
  say("micro_batch", training.batch.micro);
  say("steps", training.steps);
  if (training.seq_len > 0) say("seq_len", training.seq_len);
  if (const auto freeze_step = freeze_step_of(training.recipe)) say("freeze_step", *freeze_step);
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
  for (const char* key : {"gpus", "global_batch", "micro_batch", "seq_len", "freeze_step"}) {
    const auto said = base.find(key);
    if (said == base.end()) continue;
    const std::int64_t value = std::stoll(said->second);
    // freeze_step counts steps. It changes by the same share as the numbers, but by at least one
    // step.
    const bool fine = std::string_view(key) == "freeze_step";
    const std::int64_t by =
        fine ? std::max<std::int64_t>(1, std::llround(static_cast<double>(value) * result.by))
             : value;
    const std::int64_t moved = value + by;
    const std::int64_t lower = fine ? value - by : value / 2;
    const Outcome here = outcome_of(static_cast<double>(value), result.forecast);
    const auto low = lower > 0 && (fine || value % 2 == 0) ? outcome_with(base, key, lower, catalog)
                                                           : std::nullopt;
    // An elasticity is a ratio of logarithms, so it is undefined for a value of zero.
    const auto high = value > 0 ? outcome_with(base, key, moved, catalog) : std::nullopt;
    if (low || high)
      result.effects.push_back(
          effect(key, said->second, result.of_speedup(), low.value_or(here), high.value_or(here)));
    else
      result.fixed.emplace_back(key);
  }
}

void share_intervals(Sensitivity& result) {
  const auto weight = [&](const InputEffect& effect) {
    return std::abs(effect.speedup_elasticity.value_or(effect.time_elasticity));
  };
  for (const IntervalPart& part : result.parts) {
    double all = 0;
    for (const InputEffect& effect : result.effects)
      if (effect.source == part.source) all += weight(effect);
    for (InputEffect& effect : result.effects)
      if (effect.source == part.source && all > 0)
        effect.interval_share = result.share(part) * weight(effect) / all;
  }
}

}  // namespace

bool Sensitivity::of_speedup() const {
  return judgement.verdict && judgement.verdict != Verdict::not_judged;
}

double Sensitivity::share(const IntervalPart& part) const {
  return of_speedup() ? part.speedup_share : part.time_share;
}

const IntervalPart* Sensitivity::to_measure() const {
  const auto first = std::ranges::find_if(parts, [&](const IntervalPart& part) {
    return !measurement_for(part.source, scenario.training).empty();
  });
  return first == parts.end() ? nullptr : &*first;
}

Sensitivity sensitivity_of(const WhatIf& what_if, double by, Catalog& catalog) {
  if (!(by >= 0.001 && by <= 0.5))
    fail_input({"", 0, "--by"}, fmt::format("{:g} is out of range", 100 * by), "0.1 to 50");
  Sensitivity result;
  result.by = by;
  result.scenario = resolve(what_if, catalog);
  const TrainingPlan& training = result.scenario.training;
  CollectiveCosts costs;
  result.forecast = forecast(training, costs);
  result.judgement = judgement_of(result.scenario, result.forecast);
  result.parts = parts_of(result.forecast);
  sort_stably(result.parts, std::ranges::greater(),
              [&](const IntervalPart& part) { return result.share(part); });
  for (const NumericInput& input : numeric_inputs(training)) {
    const Outcome low = outcome_of(1 - by, scaled(training, input, 1 - by));
    const Outcome high = outcome_of(1 + by, scaled(training, input, 1 + by));
    InputEffect& of =
        result.effects.emplace_back(effect(input.key, input.value, result.of_speedup(), low, high));
    of.provenance = input.provenance;
    of.source = source_between(low, high);
  }
  share_intervals(result);
  add_choices(result, catalog);
  sort_stably(result.effects, std::ranges::greater(),
              [](const InputEffect& effect) { return std::abs(effect.time_elasticity); });
  return result;
}

}  // namespace lambcast
