#include "experiments/sweep/result_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "experiments/output/forecast_output.h"
#include "experiments/output/skipped_steps.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

constexpr std::array<StepKind, 4> kinds{StepKind::uniform, StepKind::warmup, StepKind::compression,
                                        StepKind::silent};
// Kinds of steps that were added later; their columns follow all others.
constexpr std::array<StepKind, 3> later_kinds{StepKind::refresh, StepKind::round,
                                              StepKind::dry_run};

constexpr std::size_t usual_bytes = 1536;  // typical bytes of a row

const StepForecast* find_step(const Forecast& forecast, StepKind kind) {
  const auto found = std::find_if(forecast.steps.begin(), forecast.steps.end(),
                                  [&](const StepForecast& step) { return step.kind == kind; });
  return found == forecast.steps.end() ? nullptr : &*found;
}

void add_figure_columns(StepKind kind, std::vector<std::string>& columns) {
  columns.push_back(fmt::format("{}_steps", name_of(kind)));
  for (const StepFigure& figure : step_figures())
    columns.push_back(fmt::format("{}_{}", name_of(kind), figure.name));
}

// Adds the figures of a step; null: the run has no such step.
void add_figures(const StepForecast* step, csv::Row& row) {
  if (step == nullptr) {
    row.empty(1 + step_figures().size());
    return;
  }
  row.whole(step->steps);
  for (const StepFigure& figure : step_figures()) row.number(step->*figure.value);
}
void add_interval(const StepForecast* step, csv::Row& row) {
  if (step == nullptr)
    row.empty(2);
  else
    row.number(step->step_time_low_us).number(step->step_time_high_us);
}
void add_coverage(const StepForecast* step, csv::Row& row) {
  row.number(step != nullptr ? step->coverage : std::nullopt);
}

// Returns the settings that no other column shows: "cluster.node.gpu_link=25GB/s;
// device=mine.toml". Descriptions in files are included, since their names need not differ.
std::string settings_of(const WhatIf& what_if) {
  static const std::set<std::string> columns(result_columns().begin(), result_columns().end());
  std::string settings;
  for (const auto& [key, value] : what_if)
    if (!columns.contains(key) || is_path(value))
      settings += fmt::format("{}{}={}", settings.empty() ? "" : "; ", key, value);
  return settings;
}

void add_judgement(const Judgement& judgement, csv::Row& row) {
  std::vector<std::string_view> codes;
  for (const Finding& finding : judgement.findings)
    if (std::ranges::find(codes, finding.code) == codes.end()) codes.push_back(finding.code);
  row.text(judgement.verdict ? name_of(*judgement.verdict) : "").text(judgement.measure_first);
  if (const auto& fused = judgement.fused)
    row.number(fused->value).number(fused->low).number(fused->high);
  else
    row.empty(3);
  row.text(fmt::format("{}", fmt::join(codes, " ")));
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
    all.emplace_back("verdict_words");
    return all;
  }();
  return columns;
}

std::string result_row(const Scenario& scenario, const Forecast& forecast,
                       const Judgement& judgement) {
  const TrainingPlan& training = scenario.training;
  const auto& optimizer = *scenario.config.optimizer;
  csv::Row row(usual_bytes);
  row.text(training.model->name).text(training.cluster->name).text(name_of(optimizer.type));
  row.text(optimizer.comm_backend_name.value).whole(training.nodes()).whole(training.gpus);
  row.whole(training.batch.micro).whole(training.batch.gas).whole(training.batch.train);
  row.whole(training.seq_len).whole(training.steps).whole(freeze_step_of(training.recipe));
  for (const StepKind kind : kinds) add_figures(find_step(forecast, kind), row);
  const RunForecast& run = forecast.run;
  row.number(run.time_s).number(run.samples_per_s).number(run.gpu_hours).number(run.cost_usd);
  row.number(run.wire_bytes_per_gpu).number(run.volume_reduction).number(run.speedup_vs_baseline);
  row.text(run.baseline_optimizer).number(forecast.memory.peak.value());
  row.flag(forecast.memory.fits);
  row.text(forecast.memory.fits
               ? "ok"
               : fmt::format("infeasible: needs {} a GPU, {} has {}", to_text(forecast.memory.peak),
                             training.device->name, to_text(training.device->memory_capacity)));
  row.text(name_of(forecast.sources.weakest())).flag(optimizer.cuda_aware.value);
  row.number(training.cluster->nic_bandwidth.value.value() * 8e-9);
  row.text(name_of(training.kernels)).text(name_of(training.network));
  for (const StepKind kind : kinds) add_interval(find_step(forecast, kind), row);
  bool calibrated = true;
  Basis basis = Basis::this_machine;
  for (const StepForecast& step : forecast.steps) {
    calibrated &= step.calibrated;
    basis = std::max(basis, step.basis);
  }
  row.flag(calibrated);
  for (const StepKind kind : kinds) add_coverage(find_step(forecast, kind), row);
  row.text(name_of(basis)).text(training.device->name).whole(training.gpus_per_node);
  row.text(name_of(training.recipe.precision.weights)).whole(training.recipe.zero.stage);
  row.text(name_of(overlap_of(training))).text(training.expand ? "off" : "auto");
  row.text(settings_of(scenario.asked)).number(run.time_low_s).number(run.time_high_s);
  row.number(run.cost_at(run.time_low_s)).number(run.cost_at(run.time_high_s));
  if (run.speedup)
    row.number(run.speedup->low).number(run.speedup->high);
  else
    row.empty(2);
  const LanguageRates rates = language_rates(training, forecast);
  row.number(rates.tokens_per_s).number(rates.tflops_per_gpu).number(rates.mfu);
  add_judgement(judgement, row);
  for (const StepKind kind : later_kinds) {
    const StepForecast* step = find_step(forecast, kind);
    add_figures(step, row);
    add_interval(step, row);
    add_coverage(step, row);
  }
  row.number(expected_skipped_steps(training.recipe.precision, training.steps));
  row.text(judgement.verdict ? words_of(*judgement.verdict) : "");
  return std::move(row).line();
}

std::string infeasible_row(const WhatIf& what_if, const std::string& reason) {
  csv::Row row;
  for (const std::string& column : result_columns()) {
    const auto asked = what_if.find(column);
    if (column == "status")
      row.text("infeasible: " + reason);
    else if (column == "settings")
      row.text(settings_of(what_if));
    else
      row.text(asked != what_if.end() ? asked->second : "");
  }
  return std::move(row).line();
}

}  // namespace lambcast
