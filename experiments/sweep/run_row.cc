#include "experiments/sweep/run_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace lambcast {
namespace {

std::string cell_text(const csv::Table& table, std::size_t row, std::string_view column) {
  return table.has(column) ? table.text(row, column) : "";
}

double number_of(const csv::Table& table, std::size_t row, std::string_view column) {
  return cell_text(table, row, column).empty() ? RunRow::absent : table.number(row, column);
}

std::optional<Speedup> speedup_of(const csv::Table& table, std::size_t row, const char* value,
                                  const char* low, const char* high) {
  const Speedup speedup{number_of(table, row, value), number_of(table, row, low),
                        number_of(table, row, high)};
  // Plain optimizers have no comparison and so no interval.
  return std::isnan(speedup.low) ? std::nullopt : std::optional(speedup);
}

}  // namespace

RunRow run_row_of(const csv::Table& table, std::size_t row) {
  RunRow run;
  run.status = table.text(row, "status");
  const auto number = [&](const char* column) { return number_of(table, row, column); };
  if (table.text(row, "run_time_s").empty()) return run;
  run.time_s = number("run_time_s");
  run.time_low_s = number("run_time_low_s");
  run.time_high_s = number("run_time_high_s");
  run.steps = number("steps");
  run.gpus = number("gpus");
  run.samples = number("run_samples_per_s") * run.time_s;
  run.tokens = number("run_tokens_per_s") * run.time_s;
  run.cost_usd = number("cost_usd");
  run.cost_low_usd = number("cost_low_usd");
  run.cost_high_usd = number("cost_high_usd");
  run.memory = number("peak_bytes_per_gpu");
  run.speedup = speedup_of(table, row, "speedup_vs_baseline", "speedup_low", "speedup_high");
  run.fused = speedup_of(table, row, "fused_speedup", "fused_speedup_low", "fused_speedup_high");
  run.measure_first = cell_text(table, row, "measure_first");
  const std::string findings(cell_text(table, row, "findings"));
  run.fails = backend_fails(findings);
  std::istringstream codes(findings);
  for (std::string code; codes >> code;) run.findings.push_back(code);
  if (!run.speedup) return run;
  const double warmup = number("warmup_steps");
  const double compressed = std::isnan(warmup) ? 1 : 1 - warmup / run.steps;
  run.verdict = verdict_of(*run.speedup, compressed, run.ok());
  if (run.fused) run.fused_verdict = verdict_of(*run.fused, compressed, true);
  run.warm_up = warm_up_of(number("freeze_step"), run.steps);
  return run;
}

std::vector<const RunRow*> sound_rows(const std::vector<RunRow>& rows) {
  std::vector<const RunRow*> ran, sound, early;
  for (const RunRow& row : rows) {
    if (!row.ok()) continue;
    ran.push_back(&row);
    if (!row.speedup || is_compared(row)) sound.push_back(&row);
    if (row.speedup && row.warm_up == WarmUp::early && !row.fails) early.push_back(&row);
  }
  return !sound.empty() ? sound : !early.empty() ? early : ran;
}

RowVerdicts verdicts_of(const std::vector<RunRow>& rows) {
  RowVerdicts verdicts;
  const bool early_count = std::ranges::none_of(rows, is_compared);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const RunRow& row = rows[i];
    if (!row.ok() || !row.speedup) continue;
    const bool counts = early_count && row.warm_up == WarmUp::early && !row.fails;
    if (!counts && verdicts.left_out.add(row.warm_up, row.fails)) continue;
    verdicts.own.add(i, *row.speedup, row.verdict, row.measure_first);
    if (row.fused) verdicts.fused.add(i, *row.fused, row.fused_verdict, "");
  }
  return verdicts;
}

}  // namespace lambcast
