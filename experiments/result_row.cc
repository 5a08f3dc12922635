#include "experiments/result_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "experiments/forecast_output.h"
#include "experiments/skipped_steps.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

constexpr std::array<StepKind, 4> kinds{StepKind::uniform, StepKind::warmup, StepKind::compression,
                                        StepKind::silent};
// Those that came later stand behind all other columns.
constexpr std::array<StepKind, 3> later_kinds{StepKind::refresh, StepKind::round,
                                              StepKind::dry_run};

const StepForecast* find_step(const Forecast& forecast, StepKind kind) {
  const auto found = std::find_if(forecast.steps.begin(), forecast.steps.end(),
                                  [&](const StepForecast& step) { return step.kind == kind; });
  return found == forecast.steps.end() ? nullptr : &*found;
}

std::string digits_of(std::int64_t value) { return fmt::format("{}", value); }

std::string number_or_none(const std::optional<double>& value) {
  return value ? csv::number(*value) : "";
}

void add_figure_columns(StepKind kind, std::vector<std::string>& columns) {
  columns.push_back(fmt::format("{}_steps", name_of(kind)));
  for (const StepFigure& figure : step_figures())
    columns.push_back(fmt::format("{}_{}", name_of(kind), figure.name));
}

// Null: the run has no such step.
void add_figures(const StepForecast* step, std::vector<std::string>& row) {
  row.push_back(step != nullptr ? digits_of(step->steps) : "");
  for (const StepFigure& figure : step_figures())
    row.push_back(step != nullptr ? csv::number(step->*figure.value) : "");
}
void add_interval(const StepForecast* step, std::vector<std::string>& row) {
  row.push_back(step != nullptr ? csv::number(step->step_time_low_us) : "");
  row.push_back(step != nullptr ? csv::number(step->step_time_high_us) : "");
}
std::string coverage_of(const StepForecast* step) {
  return step != nullptr && step->coverage ? csv::number(*step->coverage) : "";
}

// What was asked and no other column shows: "cluster.node.gpu_link=25GB/s; device=mine.toml".
// Descriptions in files count, since their names need not differ.
std::string settings_of(const WhatIf& what_if) {
  static const std::set<std::string> columns(result_columns().begin(), result_columns().end());
  std::string settings;
  for (const auto& [key, value] : what_if)
    if (!columns.contains(key) || is_path(value))
      settings += fmt::format("{}{}={}", settings.empty() ? "" : "; ", key, value);
  return settings;
}

std::vector<std::string> with_judgement(const Judgement& judgement, std::vector<std::string> row) {
  std::vector<std::string> codes;
  for (const Finding& finding : judgement.findings)
    if (std::ranges::find(codes, finding.code) == codes.end()) codes.push_back(finding.code);
  const auto& fused = judgement.fused;
  row.insert(
      row.end(),
      {judgement.verdict ? std::string(name_of(*judgement.verdict)) : "", judgement.measure_first,
       fused ? csv::number(fused->value) : "", fused ? csv::number(fused->low) : "",
       fused ? csv::number(fused->high) : "", fmt::format("{}", fmt::join(codes, " "))});
  return row;
}

}  // namespace

const std::vector<std::string>& result_columns() {
  static const std::vector<std::string> columns = [] {
    std::vector<std::string> all{"model",        "cluster", "optimizer",   "backend",
                                 "nodes",        "gpus",    "micro_batch", "grad_accum",
                                 "global_batch", "seq_len", "steps",       "freeze_step"};
    for (const StepKind kind : kinds) add_figure_columns(kind, all);
    for (const char* name :
         {"run_time_s", "run_samples_per_s", "gpu_hours", "cost_usd", "run_wire_bytes_per_gpu",
          "volume_reduction", "speedup_vs_baseline", "baseline_optimizer", "peak_bytes_per_gpu",
          "fits", "status", "cost_source", "cuda_aware", "nic_bandwidth_Gbps", "kernels",
          "network"})
      all.emplace_back(name);
    for (const StepKind kind : kinds)
      for (const char* end : {"low", "high"})
        all.push_back(fmt::format("{}_step_time_{}_us", name_of(kind), end));
    all.emplace_back("communication_calibrated");
    for (const StepKind kind : kinds)
      all.push_back(fmt::format("{}_step_time_coverage", name_of(kind)));
    all.emplace_back("compute_basis");
    for (const char* name : {"device",        "gpus_per_node",     "precision",
                             "zero_stage",    "overlap",           "symmetry",
                             "settings",      "run_time_low_s",    "run_time_high_s",
                             "cost_low_usd",  "cost_high_usd",     "speedup_low",
                             "speedup_high",  "run_tokens_per_s",  "tflops_per_gpu",
                             "mfu",           "verdict",           "measure_first",
                             "fused_speedup", "fused_speedup_low", "fused_speedup_high",
                             "findings"})
      all.emplace_back(name);
    for (const StepKind kind : later_kinds) {
      add_figure_columns(kind, all);
      for (const char* end : {"time_low_us", "time_high_us", "time_coverage"})
        all.push_back(fmt::format("{}_step_{}", name_of(kind), end));
    }
    all.emplace_back("steps_skipped");
    return all;
  }();
  return columns;
}

std::vector<std::string> result_row(const Scenario& scenario, const Forecast& forecast,
                                    const Judgement& judgement) {
  const TrainingPlan& training = scenario.training;
  const auto& optimizer = *scenario.config.optimizer;
  const auto freeze_step = freeze_step_of(training.recipe);
  std::vector<std::string> row{training.model->name,
                               training.cluster->name,
                               std::string(name_of(optimizer.type)),
                               optimizer.comm_backend_name.value,
                               digits_of(training.nodes()),
                               digits_of(training.gpus),
                               digits_of(training.batch.micro),
                               digits_of(training.batch.gas),
                               digits_of(training.batch.train),
                               digits_of(training.seq_len),
                               digits_of(training.steps),
                               freeze_step ? digits_of(*freeze_step) : ""};
  row.reserve(result_columns().size());
  for (const StepKind kind : kinds) add_figures(find_step(forecast, kind), row);
  const RunForecast& run = forecast.run;
  row.insert(
      row.end(),
      {csv::number(run.time_s), csv::number(run.samples_per_s), csv::number(run.gpu_hours),
       number_or_none(run.cost_usd), csv::number(run.wire_bytes_per_gpu),
       csv::number(run.volume_reduction), csv::number(run.speedup_vs_baseline),
       run.baseline_optimizer, csv::number(forecast.memory.peak.value()),
       forecast.memory.fits ? "true" : "false",
       forecast.memory.fits
           ? "ok"
           : fmt::format("infeasible: needs {} a GPU, {} has {}", to_text(forecast.memory.peak),
                         training.device->name, to_text(training.device->memory_capacity)),
       std::string(name_of(weakest(forecast.sources))),
       optimizer.cuda_aware.value ? "true" : "false",
       csv::number(training.cluster->nic_bandwidth.value.value() * 8e-9),
       std::string(name_of(training.kernels)), std::string(name_of(training.network))});
  const LanguageRates rates = language_rates(training, forecast);
  bool calibrated = true;
  Basis basis = Basis::this_machine;
  for (const StepKind kind : kinds) add_interval(find_step(forecast, kind), row);
  for (const StepForecast& step : forecast.steps) {
    calibrated &= step.calibrated;
    basis = std::max(basis, step.basis);
  }
  row.emplace_back(calibrated ? "true" : "false");
  for (const StepKind kind : kinds) row.push_back(coverage_of(find_step(forecast, kind)));
  row.insert(
      row.end(),
      {std::string(name_of(basis)), training.device->name, digits_of(training.gpus_per_node),
       std::string(name_of(training.recipe.precision.weights)),
       digits_of(training.recipe.zero.stage), std::string(name_of(overlap_of(training))),
       training.expand ? "off" : "auto", settings_of(scenario.asked), csv::number(run.time_low_s),
       csv::number(run.time_high_s), number_or_none(run.cost_at(run.time_low_s)),
       number_or_none(run.cost_at(run.time_high_s)),
       run.speedup ? csv::number(run.speedup->low) : "",
       run.speedup ? csv::number(run.speedup->high) : "", number_or_none(rates.tokens_per_s),
       csv::number(rates.tflops_per_gpu), number_or_none(rates.mfu)});
  row = with_judgement(judgement, std::move(row));
  for (const StepKind kind : later_kinds) {
    const StepForecast* step = find_step(forecast, kind);
    add_figures(step, row);
    add_interval(step, row);
    row.push_back(coverage_of(step));
  }
  row.push_back(csv::number(expected_skipped_steps(training.recipe.precision, training.steps)));
  return row;
}

std::vector<std::string> infeasible_row(const WhatIf& what_if, const std::string& reason) {
  std::vector<std::string> row(result_columns().size());
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string& column = result_columns()[i];
    if (column == "status") row[i] = "infeasible: " + reason;
    if (column == "settings") row[i] = settings_of(what_if);
    if (const auto asked = what_if.find(column); asked != what_if.end()) row[i] = asked->second;
  }
  return row;
}

}  // namespace lambcast
