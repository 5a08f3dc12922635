#include "experiments/convergence/wall_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/convergence/curves.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast::convergence {
namespace {

// Returns the exchange as the flag --exchange accepts it.
const char* word_of(Exchange exchange) {
  switch (exchange) {
    case Exchange::plain:
    case Exchange::fp16:  // the forecast run has 16-bit gradients already
      return "all_reduce";
    case Exchange::fp8:
      return "fp8";
    case Exchange::int8:
      return "int8";
    case Exchange::onebit:
      return "onebit";
    case Exchange::onebit_sharded:
      return "onebit / sharded";
    case Exchange::int4:
      return "int4:owed";
    case Exchange::int4_unowed:
      return "int4";
    case Exchange::power_sgd_4:
      return "powersgd:4";
    case Exchange::top_k_1:
      return "topk:1%";
    case Exchange::random_k_1:
      return "randomk:1%";
    case Exchange::chunk_top_k_64:
      return "chunktopk:64";
    case Exchange::dct_sign_64:
      return "dctsign:64";
    case Exchange::local_steps_16:
      return "localsgd:16";
    case Exchange::diloco_16:
      return "local:16";
    case Exchange::streamed_16:
      return "local:16 / fragments 4 / overlap 2";
    case Exchange::neighbours_ring:
      return "neighbours:ring";
    case Exchange::neighbours_exponential:
      return "neighbours:exponential";
    case Exchange::qgz_int4:
      return "loco";  // qgZ with error feedback, as trained in the study
  }
  return "";
}

bool has_stages(Optimizer optimizer) {
  return optimizer == Optimizer::onebit_lamb || optimizer == Optimizer::onebit_adam;
}
bool of_lamb(Optimizer optimizer) {
  return optimizer == Optimizer::lamb || optimizer == Optimizer::onebit_lamb ||
         optimizer == Optimizer::distributed_lamb || optimizer == Optimizer::lars;
}

Outcome outcome_of(const Curve& curve, double level, const Clock& clock) {
  Outcome outcome;
  outcome.curve = &curve;
  outcome.loss = final_loss(curve);
  outcome.held_out = curve.points.back().held_out;
  outcome.times = step_times(curve.run, curve.points.back().step, clock);
  for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point) {
    if (point->loss > level) break;
    outcome.steps_to_level = point->step;
  }
  outcome.hours = hours_at(curve, outcome.times, curve.points.back().step);
  outcome.hours_to_level = hours_at(curve, outcome.times, outcome.steps_to_level);
  return outcome;
}

}  // namespace

StepTimes step_times(const Run& run, int steps, const Clock& clock) {
  WhatIf what_if{{"model", "bert-large"},
                 {"cluster", clock.cluster},
                 {"gpus", std::to_string(clock.gpus)},
                 {"micro_batch", "16"},
                 {"grad_accum", "1"},
                 {"steps", std::to_string(steps)},
                 {"optimizer", name_of(run.optimizer)}};
  if (run.exchange != Exchange::plain) what_if["exchange"] = word_of(run.exchange);
  if (run.exchange == Exchange::qgz_int4) what_if.emplace("config", "sharded.json");
  if (freezes(run.optimizer))
    what_if["freeze_step"] = std::to_string(run.freeze_step == 0 ? steps / 5 : run.freeze_step);
  // ZeRO accepts LAMB only with zero_allow_untested_optimizer.
  Catalog catalog(std::make_shared<DescriptionTexts>(std::map<std::string, std::string>{
      {"config sharded.json",
       R"({"zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": true})"}}));
  CollectiveCosts costs;
  const Forecast whole = forecast(resolve(what_if, catalog).training, costs);
  if (!has_stages(run.optimizer)) {
    const double mean = whole.run.time_s / static_cast<double>(whole.run.steps);
    return StepTimes{mean, mean};
  }
  LAMBCAST_CHECK(whole.steps.size() == 2, "{} kinds of step", whole.steps.size());
  return StepTimes{whole.steps[0].step_time_us * 1e-6, whole.steps[1].step_time_us * 1e-6};
}

double hours_at(const Curve& curve, const StepTimes& times, int step) {
  const int before = curve.frozen_at == 0 ? step : std::min(step, curve.frozen_at);
  return (before * times.warm_up_s + (step - before) * times.after_s) / 3600;
}

Study judge(const std::vector<Curve>& curves, bool lamb, double above, const Clock& clock) {
  const auto plain = std::ranges::find_if(curves, [&](const Curve& curve) {
    return curve.run.optimizer == (lamb ? Optimizer::lamb : Optimizer::adam) &&
           curve.run.exchange == Exchange::plain;
  });
  if (plain == curves.end())
    throw Error(Exit::usage, fmt::format("no curve of {}, whose final loss sets the level",
                                         lamb ? "lamb" : "adam"));
  Study study{.level = final_loss(*plain) + above, .outcomes = {}};
  for (const Curve& curve : curves) {
    if (of_lamb(curve.run.optimizer) == lamb)
      study.outcomes.push_back(outcome_of(curve, study.level, clock));
  }
  return study;
}

std::string study_csv(const std::vector<Study>& studies) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  std::string out =
      csv::row({"run", "frozen_at", "final_loss", "held_out_loss", "level", "steps_to_level",
                "hours_to_level", "hours", "warmup_step_s", "after_step_s"}) +
      "\n";
  for (const Study& study : studies) {
    for (const Outcome& o : study.outcomes) {
      const bool reached = o.steps_to_level != 0;
      out += csv::row({o.curve->run.name(), std::to_string(o.curve->frozen_at), csv::number(o.loss),
                       csv::number(o.held_out), csv::number(study.level),
                       reached ? std::to_string(o.steps_to_level) : "",
                       csv::number(reached ? o.hours_to_level : none), csv::number(o.hours),
                       csv::number(o.times.warm_up_s), csv::number(o.times.after_s)}) +
             "\n";
    }
  }
  return out;
}

}  // namespace lambcast::convergence
