#include "experiments/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "experiments/advise/advice.h"
#include "experiments/output/forecast_output.h"
#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/words.h"
#include "experiments/sweep/common_length.h"
#include "models/optimizer/optimizer_model.h"
#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

void refuse_repeated(const std::vector<std::string>& values, std::string_view key) {
  std::set<std::string> seen;
  for (const std::string& value : values)
    if (!seen.insert(value).second)
      fail_input(flag(key), fmt::format("'{}' is named twice", value));
}

// Throws Error if both a key and a list of its values are given.
void refuse_both(const WhatIf& what_if, const std::string& key,
                 const std::vector<std::string>& values) {
  if (!values.empty() && what_if.contains(key))
    fail_input(flag(key),
               fmt::format("contradicts --{}s{}", key,
                           key == "cluster" ? " or the clusters named first" : ""),
               "one of the two");
}

bool is_onebit(const std::string& optimizer) {
  const std::vector<std::string>& names = optimizer_names();
  const auto name = std::ranges::find(names, optimizer);
  if (name == names.end()) fail_unknown(flag("optimizers"), "value", optimizer, names);
  return optimizer_models()[static_cast<std::size_t>(name - names.begin())]->onebit;
}

// The question with one value of each list. The value is part of the name if the list has several.
struct AskedPoint {
  std::string name;
  WhatIf what_if;
};
std::vector<AskedPoint> for_each(const std::vector<AskedPoint>& questions, std::string_view key,
                                 const std::vector<std::string>& values) {
  if (values.empty()) return questions;
  std::vector<AskedPoint> all;
  for (const AskedPoint& question : questions) {
    for (const std::string& value : values) {
      AskedPoint one = question;
      one.what_if.insert_or_assign(std::string(key), value);
      if (values.size() > 1) one.name += (one.name.empty() ? "" : ", ") + value;
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::vector<AskedPoint> questions_of(const WhatIf& what_if, const ComparisonAxes& axes) {
  refuse_repeated(axes.clusters, "clusters");
  refuse_repeated(axes.optimizers, "optimizers");
  refuse_repeated(axes.exchanges, "exchanges");
  refuse_both(what_if, "cluster", axes.clusters);
  refuse_both(what_if, "optimizer", axes.optimizers);
  refuse_both(what_if, "exchange", axes.exchanges);
  for (const std::string& exchange : axes.exchanges) parse_exchange(exchange, flag("exchanges"));
  const std::vector<AskedPoint> base = for_each({{"", what_if}}, "cluster", axes.clusters);
  const std::vector<AskedPoint> plain = for_each(base, "exchange", axes.exchanges);
  if (axes.optimizers.empty()) return plain;
  std::vector<AskedPoint> all;
  for (const AskedPoint& question : axes.exchanges.empty() ? base : plain) {
    for (const std::string& optimizer : axes.optimizers) {
      AskedPoint one = question;
      if (is_onebit(optimizer)) {
        // A 1-bit optimizer appears once, in place of the first exchange.
        if (!axes.exchanges.empty() && question.what_if.at("exchange") != axes.exchanges.front())
          continue;
        one.what_if.erase("exchange");
        if (axes.clusters.size() > 1)
          one.name = question.what_if.at("cluster");
        else
          one.name.clear();
      }
      one.what_if.insert_or_assign("optimizer", optimizer);
      if (axes.optimizers.size() > 1) one.name += (one.name.empty() ? "" : ", ") + optimizer;
      all.push_back(std::move(one));
    }
  }
  return all;
}

// Gives all questions one run length, if none states one and the assumed lengths would differ.
std::optional<std::int64_t> settle_length(std::vector<AskedPoint>& questions, Catalog& catalog) {
  std::vector<WhatIf> asked;
  for (const AskedPoint& question : questions) asked.push_back(question.what_if);
  const auto steps = common_length(asked, catalog);
  if (steps)
    for (AskedPoint& question : questions)
      question.what_if.insert_or_assign("steps", fmt::format("{}", *steps));
  return steps;
}

void judge_compression(const Scenario& scenario, const Forecast& forecast, CollectiveCosts& costs,
                       CompressionPays& pays) {
  const Judgement judgement = judgement_of(scenario, forecast);
  if (!judgement.verdict || judgement.compressed_share < least_compressed_share) {
    pays.why_not =
        fmt::format("only {:.3g} % of the steps compress", 100 * judgement.compressed_share);
    return;
  }
  if (judgement.verdict == Verdict::not_judged) {
    pays.why_not = judgement.why_not_judged;
    return;
  }
  pays.speedup = *forecast.run.speedup;
  pays.verdict = *judgement.verdict;
  pays.measure_first = judgement.measure_first;
  pays.fused = fused_speedup(scenario, forecast, costs);
}

CompressionPays compression_of(const Contestant& contestant, Catalog& catalog,
                               CollectiveCosts& costs) {
  const TrainingPlan& training = contestant.scenario.training;
  CompressionPays pays;
  pays.optimizer = name_of(onebit_of(training.optimizer()));
  if (is_onebit(training.optimizer())) {
    judge_compression(contestant.scenario, contestant.forecast, costs, pays);
    return pays;
  }
  WhatIf kin = contestant.scenario.asked;
  kin["optimizer"] = pays.optimizer;
  kin.erase("exchange");
  pays.warmup_assumed = !contestant.scenario.config.optimizer->freeze_step.given;
  if (pays.warmup_assumed) kin["freeze_step"] = assumed_warmup;
  try {
    const Scenario scenario = resolve(kin, catalog);
    judge_compression(scenario, forecast(scenario.training, costs), costs, pays);
  } catch (const Error& error) {
    pays.why_not = error.what();
  }
  return pays;
}

Contestant forecast_of(const AskedPoint& asked, Catalog& catalog, CollectiveCosts& costs) {
  Contestant contestant;
  contestant.name = asked.name;
  bool assumes_warmup = false;
  try {
    contestant.scenario = resolve(asked.what_if, catalog);
    // DeepSpeed's default never compresses, and would rank the optimizer by its warm-up. A file
    // without the key has that default.
    if (!asked.what_if.contains("config") && is_onebit(contestant.scenario.training.optimizer()) &&
        !contestant.scenario.config.optimizer->freeze_step.given) {
      WhatIf warmed_up = asked.what_if;
      warmed_up["freeze_step"] = assumed_warmup;
      contestant.scenario = resolve(warmed_up, catalog);
      assumes_warmup = true;
    }
    contestant.forecast = forecast(contestant.scenario.training, costs);
  } catch (const InvalidValue&) {
    throw;  // invalid in every combination
  } catch (const Error& error) {
    if (error.code() != Exit::usage) throw;
    contestant.refused = error.what();
    return contestant;
  }
  contestant.step = mean_step(contestant.forecast);
  contestant.compression = compression_of(contestant, catalog, costs);
  contestant.compression.warmup_assumed |= assumes_warmup;
  return contestant;
}

struct Trained {
  double samples, tokens;
};
Trained trained_in(const Contestant& contestant) {
  const RunForecast& run = contestant.forecast.run;
  const auto tokens_per_s =
      language_rates(contestant.scenario.training, contestant.forecast).tokens_per_s;
  return {run.samples_per_s * run.time_s,
          tokens_per_s.value_or(std::numeric_limits<double>::quiet_NaN()) * run.time_s};
}

// Ranking class of a contestant: 0 fits in memory, 1 does not fit, 2 cannot run.
int class_of(const Contestant& contestant) {
  if (!contestant.refused.empty()) return 2;
  return contestant.forecast.memory.fits ? 0 : 1;
}

}  // namespace

std::optional<RatioInterval> Comparison::ratio(const Contestant& slower,
                                               const Contestant& faster) const {
  if (!slower.refused.empty() || !faster.refused.empty()) return std::nullopt;
  RatioInterval ratio =
      ratio_of(slower.forecast.time, faster.forecast.time,
               common_sources(slower.scenario.training, faster.scenario.training));
  const double factor = share(slower) / share(faster);
  for (double* end : {&ratio.value, &ratio.low, &ratio.high}) *end *= factor;
  for (ErrorShare& source : ratio.shares) {
    source.low *= factor;
    source.high *= factor;
  }
  return ratio;
}

double Comparison::share(const Contestant& contestant) const {
  const Trained of = trained_in(contestant);
  return work.share(of.samples, of.tokens);
}

bool Comparison::answered() const { return class_of(ranked.front()) == 0; }

Comparison compare(const WhatIf& what_if, const ComparisonAxes& axes, Catalog& catalog) {
  std::vector<AskedPoint> questions = questions_of(what_if, axes);
  if (questions.size() < 2)
    throw Error(
        Exit::usage,
        "compare needs two or more: --clusters A,B, --optimizers A,B or --exchanges A,B; try: "
        "lambcast compare commodity-10gbe commodity-100gbe --model bert-large --gpus 32 "
        "--optimizer lamb --global-batch 16384 --micro-batch 64");
  Comparison comparison;
  comparison.clusters_differ = axes.clusters.size() > 1;
  comparison.common_steps = settle_length(questions, catalog);
  CollectiveCosts costs;
  for (const AskedPoint& asked : questions)
    comparison.ranked.push_back(forecast_of(asked, catalog, costs));
  for (const Contestant& contestant : comparison.ranked) {
    if (!contestant.refused.empty()) continue;
    const Trained of = trained_in(contestant);
    comparison.work.add(of.samples, of.tokens);
  }
  const auto rank = [&](const Contestant& contestant) {
    const int of = class_of(contestant);
    return std::pair(of,
                     of == 2 ? 0 : contestant.forecast.run.time_s * comparison.share(contestant));
  };
  sort_stably(comparison.ranked, {}, rank);
  const auto named =
      std::ranges::find(comparison.ranked, questions.front().name, &Contestant::name);
  comparison.first_named = static_cast<std::size_t>(named - comparison.ranked.begin());
  return comparison;
}

}  // namespace lambcast
