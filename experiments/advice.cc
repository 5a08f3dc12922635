#include "experiments/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/words.h"

namespace lambcast {
namespace {

using deepspeed::OptimizerType;

// A speed-up that somebody would change a run for.
constexpr double worth_it = 1.05;

constexpr double lowest_bit_per_s = 1e8, highest_bit_per_s = 1e13;

struct Choice {
  const char* name;
  const char* backend;
  const char* cuda_aware;
};
constexpr Choice choices[] = {{"nccl", "nccl", "false"},
                              {"mpi (host-staged)", "mpi", "false"},
                              {"mpi (cuda_aware)", "mpi", "true"},
                              {"compressed", "compressed", "false"}};

WhatIf with(WhatIf what_if, const Choice& choice) {
  what_if["backend"] = choice.backend;
  what_if["cuda_aware"] = choice.cuda_aware;
  return what_if;
}

// The question with its 1-bit optimizer named. Those refuse ZeRO: of a run that shards its states,
// the question is whether compression without ZeRO beats ZeRO without compression.
struct Asked {
  WhatIf what_if;
  std::optional<WhatIf> zero;  // the plain run that shards them
  bool warmup_assumed = false;
};

// The plain optimizer of the family that is named.
WhatIf with_plain_kin(WhatIf what_if) {
  if (const auto type = Words(what_if).choice("optimizer"))
    what_if["optimizer"] =
        std::string(deepspeed::name_of(baseline_of(static_cast<OptimizerType>(*type))));
  return what_if;
}

Asked compressed(const WhatIf& what_if, Catalog& catalog) {
  const bool says_zero = what_if.contains("zero_stage") && what_if.at("zero_stage") != "0";
  const WhatIf plain = says_zero ? with_plain_kin(what_if) : what_if;
  const TrainingPlan training = resolve(plain, catalog).training;
  const deepspeed::OptimizerConfig& optimizer = *training.config.optimizer;
  Asked asked{what_if, std::nullopt, false};
  if (training.config.zero.stage.value > 0) {
    asked.zero = plain;
    asked.what_if["zero_stage"] = "0";
  }
  if (deepspeed::is_onebit(optimizer.type) || what_if != plain) return asked;
  asked.what_if["optimizer"] = std::string(name_of(onebit_of(optimizer.type)));
  asked.warmup_assumed = !optimizer.freeze_step.given;
  if (asked.warmup_assumed) asked.what_if["freeze_step"] = assumed_warmup;
  return asked;
}

// The same of the plain optimizer.
WhatIf plain_question(WhatIf asked, const std::string& optimizer) {
  asked["optimizer"] = optimizer;
  for (const char* key : {"freeze_step", "backend", "cuda_aware"}) asked.erase(key);
  return asked;
}

// The parts of the mean step.
StepChange mean_step(const Forecast& forecast) {
  StepChange mean;
  for (const StageForecast& stage : forecast.stages) {
    const double share = static_cast<double>(stage.steps) / static_cast<double>(forecast.run.steps);
    mean.wire_us += share * stage.exposed_comm_us;
    mean.compression_us += share * (stage.compress_us + stage.decompress_us);
    mean.optimizer_us += share * stage.optimizer_us;
  }
  return mean;
}

// Against the plain run, or the one with ZeRO.
RatioInterval speedup_of(const Forecast& forecast, const std::optional<Forecast>& zero) {
  return zero ? ratio_of(zero->time, forecast.time) : *forecast.run.speedup;
}

class BreakEvenSearch {
 public:
  BreakEvenSearch(const WhatIf& compressed, const std::optional<WhatIf>& zero, Catalog& catalog)
      : compressed_(compressed), zero_(zero), catalog_(catalog) {}

  // Where `end` of the speed-up is 1.
  std::optional<Bandwidth> where(double RatioInterval::*end) {
    double low = lowest_bit_per_s, high = highest_bit_per_s;
    const bool pays_low = pays(low, end);
    if (pays_low == pays(high, end)) return std::nullopt;
    while (high / low > 1.001) {
      const double middle = std::sqrt(low * high);
      (pays(middle, end) == pays_low ? low : high) = middle;
    }
    return Bandwidth(std::sqrt(low * high) / 8);
  }
  bool pays(double bit_per_s, double RatioInterval::*end = &RatioInterval::value) {
    const auto at = [&](WhatIf what_if) {
      what_if["cluster.nic.bandwidth"] = fmt::format("{} bit/s", bit_per_s);
      return forecast(resolve(what_if, catalog_).training, costs_);
    };
    return speedup_of(at(compressed_), zero_ ? std::optional(at(*zero_)) : std::nullopt).*end > 1;
  }

 private:
  const WhatIf& compressed_;
  const std::optional<WhatIf>& zero_;
  Catalog& catalog_;
  CollectiveCosts costs_;
};

// Every backend, the fastest in full.
Answer answer_to(const WhatIf& asked, const std::optional<Forecast>& zero, Catalog& catalog) {
  Answer answer;
  CollectiveCosts costs;
  std::vector<Scenario> kept;  // costs are remembered by the address of their cluster
  for (const Choice& choice : choices) {
    kept.push_back(resolve(with(asked, choice), catalog));
    const Forecast of_choice = forecast(kept.back().training, costs);
    answer.backends.push_back({choice.name, of_choice.run.time_s, speedup_of(of_choice, zero),
                               of_choice.memory.peak, of_choice.memory.fits, with(asked, choice)});
  }
  std::ranges::stable_sort(answer.backends, {}, &BackendAdvice::time_s);
  answer.scenario = resolve(answer.backends.front().asked, catalog);
  answer.forecast = forecast(answer.scenario.training, costs);
  answer.compressed_share = compressed_share(answer.forecast);
  return answer;
}

// What only a comparison with the plain run tells; of a run that is not judged, nothing.
void compare(const Forecast& plain, const std::optional<WhatIf>& zero, Catalog& catalog,
             Answer& answer) {
  const StepChange before = mean_step(plain), after = mean_step(answer.forecast);
  answer.change = {after.wire_us - before.wire_us, after.compression_us - before.compression_us,
                   after.optimizer_us - before.optimizer_us};
  if (answer.compressed_share < least_compressed_share) return;
  if (plain.run.cost_usd) answer.cost_usd = *plain.run.cost_usd / answer.speedup().value;
  if (answer.scenario.training.nodes() == 1) return;
  BreakEvenSearch search(answer.backends.front().asked, zero, catalog);
  answer.break_even = {search.where(&RatioInterval::value), search.where(&RatioInterval::low),
                       search.where(&RatioInterval::high)};
  answer.pays_at_any_bandwidth = !answer.break_even.at && search.pays(lowest_bit_per_s);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  constexpr std::string_view names[] = {"does_not_fit", "not_judged", "yes",
                                        "hardly",       "no",         "cannot_tell"};
  return names[static_cast<std::size_t>(verdict)];
}

Verdict Answer::verdict() const {
  if (!backends.front().fits) return Verdict::does_not_fit;
  if (compressed_share < least_compressed_share) return Verdict::not_judged;
  const RatioInterval& ratio = speedup();
  if (ratio.high < 1) return Verdict::no;
  if (ratio.low > 1) return ratio.value < worth_it ? Verdict::hardly : Verdict::yes;
  return ratio.low > 1 / worth_it && ratio.high < worth_it ? Verdict::hardly : Verdict::cannot_tell;
}

Advice advise(const WhatIf& what_if, Catalog& catalog) {
  const auto [asked, zero, warmup_assumed] = compressed(what_if, catalog);
  CollectiveCosts costs;
  std::optional<Scenario> zero_scenario;  // costs are remembered by the address of its cluster
  std::optional<Forecast> of_zero;
  if (zero) {
    zero_scenario = resolve(*zero, catalog);
    of_zero = forecast(zero_scenario->training, costs);
  }
  Advice advice;
  advice.warmup_assumed = warmup_assumed;
  advice.answer = answer_to(asked, of_zero, catalog);
  if (!asked.contains("kernels")) {
    WhatIf fused = asked;
    fused["kernels"] = "fused";
    advice.fused = answer_to(fused, of_zero, catalog);
  }
  const Scenario& scenario = advice.answer.scenario;
  advice.findings = scenario.findings;
  std::ranges::copy(judge(scenario.training, advice.answer.forecast),
                    std::back_inserter(advice.findings));

  const TrainingPlan plain = zero ? zero_scenario->training : plain_run(scenario.training);
  advice.optimizer = deepspeed::name_of(scenario.training.optimizer());
  advice.baseline = deepspeed::name_of(plain.optimizer());
  if (zero) {
    advice.optimizer += " without ZeRO";
    advice.baseline += fmt::format(" with ZeRO stage {}", plain.config.zero.stage.value);
  }
  const Forecast of_plain = zero ? *of_zero : forecast(plain, costs);
  const StageForecast& step = of_plain.stages.front();
  advice.baseline_time_s = of_plain.run.time_s;
  advice.baseline_time_low_s = of_plain.run.time_low_s;
  advice.baseline_time_high_s = of_plain.run.time_high_s;
  advice.baseline_peak = of_plain.memory.peak;
  advice.exposed_share = step.exposed_comm_us / step.step_time_us;
  advice.most_speedup = 1 / (1 - advice.exposed_share);
  if (advice.judged()) advice.baseline_cost_usd = of_plain.run.cost_usd;
  compare(of_plain, zero, catalog, advice.answer);
  if (advice.fused) compare(of_plain, zero, catalog, *advice.fused);
  const std::string plain_optimizer(deepspeed::name_of(plain.optimizer()));
  advice.exchanges = advise_exchanges(plain_question(zero ? *zero : asked, plain_optimizer),
                                      advice.answer.backends.front().asked, catalog);
  return advice;
}

}  // namespace lambcast
