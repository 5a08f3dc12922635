#include "validate/survey/step_speedups.h"

#include <fmt/format.h>

#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// Returns the forecast time of the last kind of step (of a 1-bit optimizer, the compression stage)
// without the forward and backward pass.
double forecast_us(const csv::Table& table, std::size_t row, const std::string& cluster,
                   const WhatIf& question) {
  WhatIf asked{{"cluster", cluster},
               {"gpus", table.text(row, "ranks")},
               {"micro_batch", "1"},
               {"grad_accum", "1"},
               {"steps", "1000"},
               {"kernels", "fused"},
               {"precision", table.text(row, "gradient")},
               {"optimizer", table.text(row, "optimizer")}};
  for (const char* key : {"model", "device"})
    if (const auto given = question.find(key); given != question.end()) asked.insert(*given);
  if (table.text(row, "exchange") == "one_bit") {
    asked["freeze_step"] = "10";
    if (asked["optimizer"] == "zero_one_adam") asked["local_step_clipper"] = "1";
  } else {
    asked["exchange"] = table.text(row, "exchange");
  }
  Catalog catalog;
  CollectiveCosts costs;
  const StepForecast step = forecast_alone(resolve(asked, catalog).training, costs).steps.back();
  return step.gradient_comm_us + step.compress_us + step.decompress_us + step.optimizer_us;
}

}  // namespace

std::uint64_t weights_of(const WhatIf& question) {
  const auto model = question.find("model");
  if (model == question.end()) return 0;
  return static_cast<std::uint64_t>(optimized_parameters(*Catalog().model(model->second, {})));
}

std::string steps_side_by_side(const std::filesystem::path& steps, const std::string& cluster,
                               const WhatIf& question) {
  if (!std::filesystem::exists(steps)) return {};
  const csv::Table table = csv::parse(read_file(steps.string()), steps.string());
  if (table.rows.empty() || !question.contains("model")) return {};
  std::string text = fmt::format(
      "Steps of {} weights over {} ranks, exchange and update without forward and backward pass:\n"
      "{:14} {:10} {:8} {:>12} {:>12} {:>16} {:>16}\n",
      table.text(0, "weights"), table.text(0, "ranks"), "optimizer", "exchange", "gradient",
      "measured", "forecast", "speed-up measured", "forecast");
  double plain = 0, plain_forecast = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double us = table.number(row, "step_us"),
                 forecast = forecast_us(table, row, cluster, question);
    if (table.text(row, "exchange") == "all_reduce") plain = us, plain_forecast = forecast;
    text += fmt::format("{:14} {:10} {:8} {:>9.3f} ms {:>9.3f} ms {:>16.2f}x {:>15.2f}x\n",
                        table.text(row, "optimizer"), table.text(row, "exchange"),
                        table.text(row, "gradient"), us / 1e3, forecast / 1e3, plain / us,
                        plain_forecast / forecast);
  }
  return text + "\n";
}

}  // namespace lambcast
