#include "experiments/advise/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/advise/break_even.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/judgement.h"
#include "experiments/output/mean_step.h"
#include "experiments/scenario/deepspeed_choice.h"
#include "experiments/scenario/layout_choice.h"
#include "experiments/scenario/run_length.h"
#include "experiments/scenario/words.h"
#include "experiments/search/fitting_layout.h"
#include "models/training/memory/memory.h"
#include "models/training/price/backend_limit.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

WhatIf with(WhatIf what_if, const BackendTraits& backend) {
  what_if["backend"] = backend.word;
  what_if["cuda_aware"] = backend.cuda_aware ? "true" : "false";
  return what_if;
}

// A question with a 1-bit optimizer. 1-bit optimizers reject ZeRO, so a run with ZeRO is compared
// with compression without ZeRO. An optimizer without a 1-bit form is compared with the 1-bit form
// of another optimizer.
struct Asked {
  WhatIf what_if;
  std::optional<WhatIf> own;  // question of the plain run, if that is not the 1-bit baseline
  bool warmup_assumed = false;
};

// Returns whether the 1-bit form is that of another optimizer. AdamW has the 1-bit form of Adam,
// which decays weights in the same way.
bool is_of_another_family(OptimizerType type) {
  return model_of(baseline_of(onebit_of(type))).label != model_of(baseline_of(type)).label;
}

// Returns the question with the plain optimizer in place of its 1-bit form.
WhatIf with_plain_kin(WhatIf what_if) {
  if (const auto type = Words(what_if).chosen<OptimizerType>("optimizer"))
    what_if["optimizer"] = std::string(name_of(baseline_of(*type)));
  return what_if;
}

// Returns the question without ZeRO and without the keys that only ZeRO uses.
WhatIf leaving_zero(WhatIf what_if) {
  std::erase_if(what_if, [](const auto& said) {
    return is_of_zero(said.first) || (said.first == "plugin" && said.second == "low_level_zero");
  });
  what_if["zero_stage"] = "0";
  return what_if;
}

// Returns the question with fp16 stated if it would run in bf16 by default: both sides of the
// comparison run in the precision of the 1-bit optimizers.
WhatIf in_precision_of_onebit(WhatIf what_if, Catalog& catalog) {
  const Scenario scenario = resolve(with_plain_kin(what_if), catalog);
  if (scenario.training.recipe.precision.weights == DataType::bf16 &&
      !states_precision(Words(scenario.asked)))
    what_if["precision"] = name_of(DataType::fp16);
  return what_if;
}

Asked compressed(const WhatIf& what_if, Catalog& catalog) {
  const bool says_zero = what_if.contains("zero_stage") && what_if.at("zero_stage") != "0";
  const WhatIf plain = says_zero ? with_plain_kin(what_if) : what_if;
  const Scenario scenario = resolve(plain, catalog);
  const OptimizerType type = scenario.training.optimizer();
  const Exchange& exchange = scenario.training.exchange;
  if (exchange != Exchange{} && exchange.kind != Exchange::Kind::onebit)
    fail_input(flag("exchange"),
               fmt::format("advise compares {} with {} and lists other exchanges in its table",
                           name_of(onebit_of(type)), name_of(baseline_of(type))),
               "onebit, or lambcast simulate");
  Asked asked{what_if, std::nullopt, false};
  const bool shards = scenario.training.recipe.zero.stage > 0;
  if (shards || is_of_another_family(type)) asked.own = plain;
  if (shards) asked.what_if = leaving_zero(what_if);
  if (is_onebit(type) || what_if != plain) return asked;
  asked.what_if["optimizer"] = std::string(name_of(onebit_of(type)));
  asked.warmup_assumed = !scenario.config.optimizer->freeze_step.given;
  if (asked.warmup_assumed) asked.what_if["freeze_step"] = assumed_warmup;
  return asked;
}

// Returns the same question for the plain optimizer. The run keeps its number of steps if the
// freeze step determined its length.
WhatIf plain_question(WhatIf asked, const std::string& optimizer, std::int64_t steps) {
  asked["optimizer"] = optimizer;
  for (const char* key : {"freeze_step", "backend", "cuda_aware"}) asked.erase(key);
  if (!gives_length(asked)) asked["steps"] = fmt::format("{}", steps);
  return asked;
}

// The plain run of the question, if it is not the baseline of the 1-bit optimizer. All answers are
// compared with it.
struct OwnRun {
  WhatIf asked;
  TrainingPlan training;
  Forecast forecast;
  std::string name;
};

bool shards(const OwnRun& own) { return own.training.recipe.zero.stage > 0; }

OwnRun own_run(const WhatIf& asked, Catalog& catalog, CollectiveCosts& costs) {
  const TrainingPlan training = resolve(asked, catalog).training;
  OwnRun own{asked, training, forecast(training, costs),
             std::string(name_of(training.optimizer()))};
  if (shards(own)) own.name += fmt::format(" with ZeRO stage {}", training.recipe.zero.stage);
  return own;
}

WhatIf with_fused_kernels(WhatIf asked) {
  asked["kernels"] = name_of(Kernels::fused);
  return asked;
}

// Forecasts `training` and compares it with `own`, or with its own baseline if `own` is empty.
Forecast forecast_against(const std::optional<OwnRun>& own, const TrainingPlan& training,
                          CollectiveCosts& costs) {
  if (!own) return forecast(training, costs);
  Forecast of = forecast_alone(training, costs);
  compare_with(own->forecast, own->name, of);
  return of;
}

// Moves the recommended backend to the front: the first in the order of backend_traits() that may
// be as fast as the fastest, since the interval of the ratio of their run times includes 1.
void put_simplest_first(std::vector<BackendAdvice>& backends, Catalog& catalog) {
  const auto training_of = [&](const BackendAdvice& of) {
    return resolve(of.asked, catalog).training;
  };
  const BackendAdvice& fastest = backends.front();
  const TrainingPlan training = training_of(fastest);
  const auto may_be_fastest = [&](const BackendAdvice& of) {
    return of.fits == fastest.fits && ratio_of(of.forecast.time, fastest.forecast.time,
                                               common_sources(training_of(of), training))
                                              .low <= 1;
  };
  for (const BackendTraits& backend : backend_traits()) {
    const auto simplest = std::ranges::find(backends, backend.label, &BackendAdvice::backend);
    if (simplest == backends.end() || !may_be_fastest(*simplest)) continue;
    std::rotate(backends.begin(), simplest, simplest + 1);
    return;
  }
}

PlainStep plain_step(const OwnRun& own, const Answer& answer, CollectiveCosts& costs) {
  const TrainingPlan training = plain_run(answer.scenario.training);
  const Forecast plain = forecast_against(own, training, costs);
  const OptimizerType named = own.training.optimizer();
  return {fmt::format("{}{}", name_of(is_of_another_family(named) ? training.optimizer() : named),
                      shards(own) ? " without ZeRO" : ""),
          *plain.run.speedup, ratio_of(plain.time, answer.forecast().time), plain.memory.fits};
}

// Returns the answer with all backends that can run, the recommended one first. Throws the error of
// the first backend if none can run.
Answer answer_to(const WhatIf& asked, const std::optional<OwnRun>& own, Catalog& catalog,
                 CollectiveCosts& costs) {
  Answer answer;
  std::optional<Error> first;
  for (const BackendTraits& backend : backend_traits()) {
    try {
      const TrainingPlan training = resolve(with(asked, backend), catalog).training;
      if (const auto why = why_backend_fails(training)) {
        answer.refused[*why].emplace_back(backend.label);
        continue;
      }
      const Forecast of_choice = forecast_against(own, training, costs);
      answer.backends.push_back({std::string(backend.label), of_choice.run.time_s,
                                 *of_choice.run.speedup, of_choice.memory.peak,
                                 of_choice.memory.fits, with(asked, backend), of_choice});
    } catch (const Error& error) {
      if (!first) first = error;
      answer.refused[error.what()].emplace_back(backend.label);
    }
  }
  if (answer.backends.empty()) throw *first;
  sort_stably(answer.backends, {}, &BackendAdvice::time_s);
  put_simplest_first(answer.backends, catalog);
  answer.scenario = resolve(answer.backends.front().asked, catalog);
  answer.compressed_share = compressed_share(answer.forecast());
  answer.why_not_judged = why_not_judged(answer.scenario, answer.compressed_share);
  if (own) answer.plain = plain_step(*own, answer, costs);
  return answer;
}

void find_unread_of_advice(const WhatIf& asked, std::vector<Finding>& findings) {
  for (const char* key : {"backend", "cuda_aware"})
    if (asked.contains(key))
      findings.push_back(
          {Severity::note, "flag-no-effect",
           fmt::format("{}: has no effect: every backend is compared, and the fastest is judged",
                       flag(key).key)});
}

// Returns the bandwidths at which the recommended backend begins or ceases to pay.
BreakEven break_even_of(const Answer& answer, const std::optional<OwnRun>& own, Catalog& catalog,
                        CollectiveCosts& costs) {
  const auto speedup = [&](double RatioInterval::*end) {
    return [&, end](Bandwidth nic) {
      const WhatIf compressed = at_bandwidth(answer.backends.front().asked, nic);
      const auto against =
          own ? std::optional(own_run(at_bandwidth(own->asked, nic), catalog, costs))
              : std::nullopt;
      const Forecast of = forecast_against(against, resolve(compressed, catalog).training, costs);
      return (*of.run.speedup).*end;
    };
  };
  const double level = break_even_level(speedup(&RatioInterval::value));
  const auto where = [&](double RatioInterval::*end) { return break_even(speedup(end), level); };
  const auto held_back = [&](NicLimit limit) {
    return held_back_beyond(own ? own->asked : answer.backends.front().asked, own.has_value(),
                            limit, catalog, costs);
  };
  const PayingBandwidth expected = where(&RatioInterval::value), low = where(&RatioInterval::low),
                        high = where(&RatioInterval::high);
  return {expected.at,
          low.at,
          high.at,
          expected.pays_above,
          expected.pays_at_any_bandwidth,
          low.pays_above,
          low.pays_at_any_bandwidth,
          high.pays_at_any_bandwidth,
          held_back(NicLimit::streams),
          held_back(NicLimit::gpu_way)};
}

// Fills in the results of the comparison with the plain run. A run that is not judged or does not
// fit gets only the change of its mean step.
void compare(const Forecast& plain, const std::optional<OwnRun>& own, Catalog& catalog,
             CollectiveCosts& costs, Answer& answer) {
  const PartTimes before = mean_step(plain).parts, after = mean_step(answer.forecast()).parts;
  for (std::size_t i = 0; i < after.us.size(); ++i)
    answer.change.us[i] = after.us[i] - before.us[i];
  if (!answer.why_not_judged.empty() || !answer.backends.front().fits) return;
  if (plain.run.cost_usd) answer.cost_usd = *plain.run.cost_usd / answer.speedup().value;
  if (answer.scenario.training.nodes() > 1)
    answer.break_even =
        break_even_of(answer, answer.plain_gains() ? std::nullopt : own, catalog, costs);
}

WithoutZero without_zero(const OwnRun& own, Catalog& catalog, CollectiveCosts& costs) {
  const Forecast of =
      forecast_against(own, resolve(leaving_zero(own.asked), catalog).training, costs);
  return {of.run.time_s, *of.run.speedup, of.memory.peak, of.memory.fits};
}

// Returns a note on the effect of the other optimizer itself, which is not due to compression.
Finding of_another_family(const Advice& advice, const OwnRun& own, CollectiveCosts& costs) {
  const TrainingPlan kin = plain_run(advice.answer.scenario.training);
  const RunForecast run = forecast_against(own, kin, costs).run;
  return {Severity::note, "optimizer-swapped",
          fmt::format(
              "{} has no 1-bit form, so {} is judged; changing the optimizer to {} alone makes the "
              "run {} as fast as {}",
              advice.plain_optimizer, advice.optimizer, *advice.family, ratio_text(*run.speedup),
              advice.baseline)};
}

// Returns the answer as a row for the table of exchanges of the plain optimizer.
ExchangeAdvice row_of(const Answer& answer) {
  ExchangeAdvice row = exchange_advice_of(
      std::string(name_of(answer.scenario.training.optimizer())), answer.forecast());
  if (answer.break_even)
    row.pays = {answer.break_even->at, answer.break_even->pays_above,
                answer.break_even->pays_at_any_bandwidth};
  return row;
}

// Returns the row of a 1-bit optimizer with a sharded exchange: each rank exchanges its share of
// its node's sum. Absent on one node or with one GPU per node, and with a layout, ZeRO or an
// exchange that the user set.
std::optional<ExchangeAdvice> row_in_levels(const Answer& answer, Catalog& catalog,
                                            CollectiveCosts& costs) {
  const TrainingPlan& own = answer.scenario.training;
  if (own.nodes() == 1 || own.gpus_per_node == 1 || own.gpus % own.gpus_per_node != 0 ||
      own.parallelism || own.recipe.zero.stage > 0 || own.exchange != Exchange{})
    return std::nullopt;
  WhatIf asked = answer.scenario.asked;
  asked["exchange"] = "onebit / sharded";
  asked["backend"] = "nccl";
  return advise_exchange(fmt::format("{} / sharded", name_of(own.optimizer())), asked,
                         fastest_of_use(asked, catalog, costs), catalog, costs);
}

// Returns a warning if the baseline does not fit in memory: the speed-ups are then relative to a
// run that cannot start.
std::optional<Finding> find_large_baseline(const Advice& advice, const Scenario& baseline,
                                           const MemoryForecast& memory, Catalog& catalog) {
  if (memory.fits) return std::nullopt;
  const Device& device = *baseline.training.device;
  const std::string change = smallest_change(baseline, catalog);
  return Finding{Severity::warning, "baseline-does-not-fit",
                 fmt::format("{}, the baseline, needs {} a GPU, and {} has {}; {}", advice.baseline,
                             to_text(memory.peak), device.name, to_text(device.memory_capacity),
                             change.empty() ? "no change that was tried makes it fit"
                                            : "the smallest change that fits: " + change)};
}

// Drops notes that do not affect the advice: the one on skipped steps, which both runs have alike,
// and the one on the release of DeepSpeed unless its 1-bit optimizers may pay.
void drop_idle_notes(const Answer& answer, std::vector<Finding>& findings) {
  const Verdict verdict = answer.verdict();
  const bool of_use = verdict == Verdict::yes || verdict == Verdict::cannot_tell;
  std::erase_if(findings, [&](const Finding& finding) {
    if (finding.severity != Severity::note) return false;
    return finding.code == "skipped-steps" || (finding.code == "onebit-removed" && !of_use);
  });
}

}  // namespace

Verdict Answer::verdict() const {
  if (!why_not_judged.empty() && backends.front().fits) return Verdict::not_judged;
  return verdict_of(speedup_in(merit()), compressed_share, backends.front().fits);
}

Advice advise(const WhatIf& what_if, Catalog& catalog) {
  const WhatIf in_one_precision = in_precision_of_onebit(what_if, catalog);
  const auto [asked, asked_own, warmup_assumed] = compressed(in_one_precision, catalog);
  CollectiveCosts costs;
  const auto own = asked_own ? std::optional(own_run(*asked_own, catalog, costs)) : std::nullopt;
  std::optional<OwnRun> own_fused;  // plain run with fused kernels, for the fused answer
  Advice advice;
  advice.warmup_assumed = warmup_assumed;
  advice.answer = answer_to(asked, own, catalog, costs);
  if (!asked.contains("kernels")) {
    const WhatIf fused = with_fused_kernels(asked);
    if (own) {
      own_fused = own_run(with_fused_kernels(own->asked), catalog, costs);
      own_fused->name += " with fused kernels";
    }
    advice.fused = answer_to(fused, own_fused, catalog, costs);
  }
  const Scenario& scenario = advice.answer.scenario;
  advice.findings = judgement_of(scenario, advice.answer.forecast()).findings;
  drop_idle_notes(advice.answer, advice.findings);
  find_unread_of_advice(asked, advice.findings);
  if (in_one_precision != what_if)
    advice.findings.push_back(
        {Severity::note, "compared-in-fp16",
         fmt::format("{} is usually trained in bf16 on this GPU: both runs are in fp16, in which "
                     "1-bit optimizers are verified (--precision states another)",
                     scenario.training.model->name)});

  const TrainingPlan plain = own ? own->training : plain_run(scenario.training);
  advice.optimizer = name_of(scenario.training.optimizer());
  advice.plain_optimizer = name_of(plain.optimizer());
  advice.baseline = own ? own->name : advice.plain_optimizer;
  if (own && shards(*own)) {
    advice.optimizer += " without ZeRO";
    advice.without_zero = without_zero(*own, catalog, costs);
  }
  if (is_of_another_family(plain.optimizer())) {
    advice.family = name_of(baseline_of(scenario.training.optimizer()));
    advice.findings.push_back(of_another_family(advice, *own, costs));
  }
  const Forecast of_plain = own ? own->forecast : forecast(plain, costs);
  const StepForecast& step = of_plain.steps.front();
  advice.baseline_time_s = of_plain.run.time_s;
  advice.baseline_time_low_s = of_plain.run.time_low_s;
  advice.baseline_time_high_s = of_plain.run.time_high_s;
  advice.baseline_peak = of_plain.memory.peak;
  advice.exposed_share = step.exposed_comm_us / step.step_time_us;
  advice.most_speedup = 1 / (1 - advice.exposed_share);
  if (advice.judged()) advice.baseline_cost_usd = of_plain.run.cost_usd;
  advice.answer.against = advice.baseline;
  compare(of_plain, own, catalog, costs, advice.answer);
  if (advice.fused) {
    advice.fused->against = own_fused ? own_fused->name : advice.baseline;
    compare(own_fused ? own_fused->forecast : of_plain, own_fused, catalog, costs, *advice.fused);
  }
  std::vector<ExchangeAdvice> onebit{row_of(advice.answer)};
  if (const auto in_levels = row_in_levels(advice.answer, catalog, costs))
    onebit.push_back(*in_levels);
  const WhatIf baseline =
      plain_question(own ? own->asked : asked, advice.plain_optimizer, plain.steps);
  if (const auto finding =
          find_large_baseline(advice, resolve(baseline, catalog), of_plain.memory, catalog))
    advice.findings.push_back(*finding);
  advice.exchanges = advise_exchanges(baseline, onebit, catalog, costs);
  return advice;
}

}  // namespace lambcast
