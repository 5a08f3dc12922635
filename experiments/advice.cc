#include "experiments/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

using deepspeed::OptimizerType;

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

// The question with its 1-bit optimizer named.
struct Asked {
  WhatIf what_if;
  bool warmup_assumed = false;
};
Asked compressed(const WhatIf& what_if, Catalog& catalog) {
  const deepspeed::OptimizerConfig optimizer = *resolve(what_if, catalog).training.config.optimizer;
  Asked asked{what_if};
  if (deepspeed::is_onebit(optimizer.type)) return asked;
  asked.what_if["optimizer"] = std::string(name_of(onebit_of(optimizer.type)));
  asked.warmup_assumed = !optimizer.freeze_step.given;
  if (asked.warmup_assumed) asked.what_if["freeze_step"] = assumed_warmup;
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

double speedup_at(const WhatIf& what_if, double bit_per_s, Catalog& catalog,
                  CollectiveCosts& costs) {
  WhatIf at = what_if;
  at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", bit_per_s);
  return forecast(resolve(at, catalog).training, costs).run.speedup_vs_baseline;
}

void find_break_even(const WhatIf& what_if, Catalog& catalog, Answer& answer) {
  CollectiveCosts costs;
  double low = lowest_bit_per_s, high = highest_bit_per_s;
  const bool pays_low = speedup_at(what_if, low, catalog, costs) > 1;
  const bool pays_high = speedup_at(what_if, high, catalog, costs) > 1;
  answer.pays_at_any_bandwidth = pays_low && pays_high;
  if (pays_low == pays_high) return;
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    ((speedup_at(what_if, middle, catalog, costs) > 1) == pays_low ? low : high) = middle;
  }
  answer.break_even = Bandwidth(std::sqrt(low * high) / 8);
}

// Every backend, the fastest in full.
Answer answer_to(const WhatIf& asked, Catalog& catalog) {
  Answer answer;
  CollectiveCosts costs;
  std::vector<Scenario> kept;  // costs are remembered by the address of their cluster
  for (const Choice& choice : choices) {
    kept.push_back(resolve(with(asked, choice), catalog));
    const Forecast of_choice = forecast(kept.back().training, costs);
    answer.backends.push_back({choice.name, of_choice.run.time_s, of_choice.run.speedup_vs_baseline,
                               of_choice.memory.peak, of_choice.memory.fits, with(asked, choice)});
  }
  std::ranges::stable_sort(answer.backends, {}, &BackendAdvice::time_s);
  answer.scenario = resolve(answer.backends.front().asked, catalog);
  answer.forecast = forecast(answer.scenario.training, costs);
  answer.compressed_share = compressed_share(answer.forecast);
  return answer;
}

// What only a comparison with the plain run tells; of a run that is not judged, nothing.
void compare(const Forecast& plain, Catalog& catalog, Answer& answer) {
  const StepChange before = mean_step(plain), after = mean_step(answer.forecast);
  answer.change = {after.wire_us - before.wire_us, after.compression_us - before.compression_us,
                   after.optimizer_us - before.optimizer_us};
  if (answer.compressed_share < least_compressed_share) return;
  if (plain.run.cost_usd) answer.cost_usd = *plain.run.cost_usd / answer.backends.front().speedup;
  if (answer.scenario.training.nodes() > 1)
    find_break_even(answer.backends.front().asked, catalog, answer);
}

}  // namespace

Advice advise(const WhatIf& what_if, Catalog& catalog) {
  const auto [asked, warmup_assumed] = compressed(what_if, catalog);
  Advice advice;
  advice.warmup_assumed = warmup_assumed;
  advice.answer = answer_to(asked, catalog);
  if (!asked.contains("kernels")) {
    WhatIf fused = asked;
    fused["kernels"] = "fused";
    advice.fused = answer_to(fused, catalog);
  }
  const Scenario& scenario = advice.answer.scenario;
  advice.findings = scenario.findings;
  std::ranges::copy(judge(scenario.training, advice.answer.forecast),
                    std::back_inserter(advice.findings));

  TrainingPlan plain = scenario.training;
  const OptimizerType baseline = baseline_of(plain.optimizer());
  advice.optimizer = deepspeed::name_of(plain.optimizer());
  advice.baseline = deepspeed::name_of(baseline);
  plain.config.optimizer->type = baseline;
  plain.kernels = stack_kernels(plain.cluster->stack, baseline);
  CollectiveCosts costs;
  const Forecast of_plain = forecast(plain, costs);
  const StageForecast& step = of_plain.stages.front();
  advice.baseline_time_s = of_plain.run.time_s;
  advice.exposed_share = step.exposed_comm_us / step.step_time_us;
  advice.most_speedup = 1 / (1 - advice.exposed_share);
  if (advice.judged()) advice.baseline_cost_usd = of_plain.run.cost_usd;
  compare(of_plain, catalog, advice.answer);
  if (advice.fused) compare(of_plain, catalog, *advice.fused);
  return advice;
}

}  // namespace lambcast
