#include "experiments/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/forecast_output.h"

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

constexpr const char* assumed_warmup = "20%";

// The question with its 1-bit optimizer named.
struct Asked {
  WhatIf what_if;
  bool warmup_assumed = false;
};
Asked compressed(const WhatIf& what_if, Catalog& catalog) {
  const deepspeed::OptimizerConfig optimizer = *resolve(what_if, catalog).training.config.optimizer;
  Asked asked{what_if};
  if (deepspeed::is_onebit(optimizer.type)) return asked;
  asked.what_if["optimizer"] =
      optimizer.type == OptimizerType::lamb ? "onebit_lamb" : "onebit_adam";
  asked.warmup_assumed = !optimizer.freeze_step.given;
  if (asked.warmup_assumed) asked.what_if["freeze_step"] = assumed_warmup;
  return asked;
}

bool compresses(const Forecast& forecast) {
  return std::ranges::any_of(forecast.stages, [](const StageForecast& stage) {
    return stage.kind == StepKind::compression && stage.steps > 0;
  });
}

double speedup_at(const WhatIf& what_if, double bit_per_s, Catalog& catalog,
                  CollectiveCosts& costs) {
  WhatIf at = what_if;
  at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", bit_per_s);
  return forecast(resolve(at, catalog).training, costs).run.speedup_vs_baseline;
}

void find_break_even(const WhatIf& what_if, Catalog& catalog, Advice& advice) {
  CollectiveCosts costs;
  double low = lowest_bit_per_s, high = highest_bit_per_s;
  const bool pays_low = speedup_at(what_if, low, catalog, costs) > 1;
  const bool pays_high = speedup_at(what_if, high, catalog, costs) > 1;
  advice.pays_at_any_bandwidth = pays_low && pays_high;
  if (pays_low == pays_high) return;
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    ((speedup_at(what_if, middle, catalog, costs) > 1) == pays_low ? low : high) = middle;
  }
  advice.break_even = Bandwidth(std::sqrt(low * high) / 8);
}

std::string verdict(const Advice& advice) {
  const BackendAdvice& best = advice.backends.front();
  if (!best.fits)
    return fmt::format("No: {} needs {} a GPU, more than there is.", advice.optimizer,
                       to_text(best.peak));
  if (!compresses(advice.forecast))
    return fmt::format(
        "No: nothing is compressed, the warm-up fills the whole run of {} steps; --freeze-step {} "
        "asks for a usual one.",
        advice.forecast.run.steps, assumed_warmup);
  const std::string warmup =
      advice.warmup_assumed
          ? fmt::format(" and a warm-up of {} of the run (assumed)", assumed_warmup)
          : "";
  if (best.speedup < 0.995)
    return fmt::format("No: {} takes {:.2f} times as long as {}, with its best backend {}{}.",
                       advice.optimizer, 1 / best.speedup, advice.baseline, best.backend, warmup);
  if (best.speedup < 1.05)
    return fmt::format("Hardly: {} is {:.2f}x as fast as {}, with its best backend {}{}.",
                       advice.optimizer, best.speedup, advice.baseline, best.backend, warmup);
  return fmt::format("Yes: {} makes the run {:.2f}x as fast as {}, with backend {}{}.",
                     advice.optimizer, best.speedup, advice.baseline, best.backend, warmup);
}

std::string break_even_sentence(const Advice& advice) {
  if (advice.scenario.training.nodes() == 1) return "One node: the NIC plays no part.";
  if (advice.break_even)
    return fmt::format("It stops paying above a NIC bandwidth of {}; this cluster has {} ({}).",
                       to_text_bits(*advice.break_even),
                       to_text_bits(advice.scenario.training.cluster->nic_bandwidth.value),
                       name_of(advice.scenario.training.cluster->nic_bandwidth.provenance.kind));
  return advice.pays_at_any_bandwidth ? "It pays at any NIC bandwidth: something else in the node "
                                        "holds the plain optimizer back."
                                      : "It pays at no NIC bandwidth from 100 Mbit/s to 10 Tbit/s.";
}

}  // namespace

Advice advise(const WhatIf& what_if, Catalog& catalog) {
  const auto [asked, warmup_assumed] = compressed(what_if, catalog);
  Advice advice;
  advice.warmup_assumed = warmup_assumed;
  CollectiveCosts costs;
  std::vector<std::pair<BackendAdvice, const Choice*>> ranked;
  std::vector<Scenario> kept;  // costs are remembered by the address of their cluster
  for (const Choice& choice : choices) {
    kept.push_back(resolve(with(asked, choice), catalog));
    const Training& training = kept.back().training;
    const Forecast of_choice = forecast(training, costs);
    ranked.push_back({{choice.name, of_choice.run.time_s, of_choice.run.speedup_vs_baseline,
                       of_choice.memory.peak, of_choice.memory.fits, with(asked, choice)},
                      &choice});
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first.time_s < b.first.time_s; });
  for (const auto& [backend, choice] : ranked) advice.backends.push_back(backend);
  advice.scenario = resolve(with(asked, *ranked.front().second), catalog);

  advice.forecast = forecast(advice.scenario.training, costs);
  advice.findings = advice.scenario.findings;
  std::ranges::copy(judge(advice.scenario.training, advice.forecast),
                    std::back_inserter(advice.findings));

  Training plain = advice.scenario.training;
  const OptimizerType baseline = baseline_of(plain.optimizer());
  advice.optimizer = deepspeed::name_of(plain.optimizer());
  advice.baseline = deepspeed::name_of(baseline);
  plain.config.optimizer->type = baseline;
  plain.kernels = stack_kernels(plain.cluster->stack, baseline);
  const Forecast of_plain = forecast(plain, costs);
  const StageForecast& step = of_plain.stages.front();
  advice.baseline_time_s = of_plain.run.time_s;
  advice.exposed_share = step.exposed_comm_us / step.step_time_us;
  advice.most_speedup = 1 / (1 - advice.exposed_share);
  advice.baseline_cost_usd = of_plain.run.cost_usd;
  if (advice.baseline_cost_usd)
    advice.cost_usd = *advice.baseline_cost_usd / advice.backends.front().speedup;
  if (plain.nodes() > 1) find_break_even(with(asked, *ranked.front().second), catalog, advice);
  return advice;
}

std::string advice_text(const Advice& advice) {
  const Training& training = advice.scenario.training;
  std::string out = verdict(advice) + "\n" + break_even_sentence(advice) + "\n";
  out += fmt::format(
      "{:.0f}% of the {} step is exposed communication: no compression can win more than "
      "{:.2f}x.\n\n",
      advice.exposed_share * 100, advice.baseline, advice.most_speedup);
  out += fmt::format("{:<20} {:>12} {:>9} {:>12} {:>6}\n", "backend", "run", "speed-up",
                     "memory a GPU", "fits");
  for (const BackendAdvice& backend : advice.backends)
    out += fmt::format("{:<20} {:>12} {:>8.2f}x {:>12} {:>6}\n", backend.backend,
                       run_time_text(backend.time_s), backend.speedup, to_text(backend.peak),
                       backend.fits ? "yes" : "no");
  out += fmt::format("backend {}: {}", advice.backends.front().backend,
                     interval_text(training, advice.forecast));
  if (advice.cost_usd)
    out += fmt::format("\ncost: {:.0f} USD against {:.0f} USD\n", *advice.cost_usd,
                       *advice.baseline_cost_usd);
  out += fmt::format(
      "\n{} GPUs of {}, batch {}, {} steps, {} compression kernels. Time only: whether the "
      "model converges with this freeze_step is not forecast.\n",
      training.gpus, training.cluster->name, training.batch.train, training.steps,
      training.kernels == Kernels::fused ? "fused" : "DeepSpeed's unfused");
  for (const Finding& finding : advice.findings)
    out += fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  return out;
}

std::string advice_json(const Advice& advice) {
  using Json = nlohmann::ordered_json;
  const auto optional = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"verdict", verdict(advice)},
            {"optimizer", advice.optimizer},
            {"baseline_optimizer", advice.baseline},
            {"baseline_time_s", advice.baseline_time_s},
            {"exposed_comm_share", advice.exposed_share},
            {"most_speedup", advice.most_speedup},
            {"warmup_assumed", advice.warmup_assumed},
            {"break_even_nic_bandwidth_Gbps",
             advice.break_even ? Json(advice.break_even->value() * 8e-9) : Json(nullptr)},
            {"pays_at_any_bandwidth", advice.pays_at_any_bandwidth},
            {"cost_usd", optional(advice.cost_usd)},
            {"baseline_cost_usd", optional(advice.baseline_cost_usd)},
            {"backends", Json::array()},
            {"stages", Json::array()},
            {"findings", Json::array()}};
  for (const BackendAdvice& backend : advice.backends)
    json["backends"].push_back({{"backend", backend.backend},
                                {"run_time_s", backend.time_s},
                                {"speedup_vs_baseline", backend.speedup},
                                {"peak_bytes_per_gpu", backend.peak.value()},
                                {"fits", backend.fits}});
  for (const StageForecast& stage : advice.forecast.stages)
    json["stages"].push_back({{"name", std::string(name_of(stage.kind))},
                              {"step_time_us", stage.step_time_us},
                              {"step_time_low_us", stage.step_time_low_us},
                              {"step_time_high_us", stage.step_time_high_us},
                              {"step_time_coverage", optional(stage.coverage)},
                              {"communication_calibrated", stage.calibrated}});
  for (const Finding& finding : advice.findings)
    json["findings"].push_back({{"severity", std::string(name_of(finding.severity))},
                                {"code", finding.code},
                                {"message", finding.message}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lambcast
