#include "validate/program/training_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/program/log_against_flags.h"
#include "validate/program/metric_file.h"

namespace lambcast {
namespace {

// How a program writes a step. `also` must precede the label in the row.
struct RowFormat {
  std::string_view program, also, label;
  Quantity quantity;
  double unit;
  bool whole_run = false;  // a single row with the mean of all steps
};

// The framework that a program's steps imply, and another one that is possible.
struct ProgramFramework {
  std::string_view program, framework, also = {};
};

constexpr ProgramFramework frameworks[] = {
    {"Megatron-LM", "megatron", "deepspeed"},
    {"MaxText", "jax"},
    {"NeMo", "nemo"},
    {"DeepSpeed", "deepspeed"},
    {"torchtitan", "torchtitan"},
    {"Hugging Face Trainer", "pytorch", "deepspeed"},
    {"Lightning", "pytorch", "deepspeed"},
};

constexpr RowFormat formats[] = {
    {"Megatron-LM", "", "elapsed time per iteration (ms):", Quantity::step_time_s, 1e-3},
    {"Megatron-LM", "", "elapsed time per iteration (s):", Quantity::step_time_s, 1},
    {"MaxText", "completed step:", "seconds:", Quantity::step_time_s, 1},
    {"NeMo", "", "train_step_timing in s:", Quantity::step_time_s, 1},
    {"NeMo", "", "train_step_timing in s=", Quantity::step_time_s, 1},
    {"DeepSpeed", "steps:", "iter time (s):", Quantity::step_time_s, 1},
    {"DeepSpeed", "", "CurrSamplesPerSec=", Quantity::samples_per_s, 1},
    {"DeepSpeed", "", "SamplesPerSec=", Quantity::samples_per_s, 1},
    {"torchtitan", "step:", "tps:", Quantity::tokens_per_gpu_s, 1},
    {"torchtitan", "step:", "wps:", Quantity::tokens_per_gpu_s, 1},
    {"torchtune", "Step ", "tokens_per_second_per_gpu:", Quantity::tokens_per_gpu_s, 1},
    {"Composer", "", "throughput/device/tokens_per_sec:", Quantity::tokens_per_gpu_s, 1},
    {"OLMo", "", "throughput/device/tokens_per_second=", Quantity::tokens_per_gpu_s, 1},
    {"Hugging Face Trainer", "", "'train_samples_per_second':", Quantity::samples_per_s, 1, true},
    {"Hugging Face Trainer", "", "\"train_samples_per_second\":", Quantity::samples_per_s, 1, true},
};

constexpr int warm_up_rows = 5, fewest_rows = 3;
// Factor from the median absolute deviation of normal values to their standard deviation.
constexpr double scaled = 1.4826;
// The Trainer rounds its rates to 3 digits. The last batch of each epoch may be short.
constexpr double rounded_rate = 0.5e-3, short_batches = 0.1;
constexpr double far = 4, nearest_outlier = 0.02;

// Returns the number after a label, which may have thousands separators and be in quotes.
std::optional<double> number_after(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  std::string digits;
  for (std::size_t i = at + label.size(); i < line.size(); ++i) {
    const char c = line[i];
    if ((c == ' ' || c == '\'' || c == '"') && digits.empty()) continue;
    if (c == ',' && i + 1 < line.size() && line[i + 1] >= '0' && line[i + 1] <= '9') continue;
    if (!(c >= '0' && c <= '9') && c != '.' && c != 'E' && c != 'e' && c != '+' && c != '-') break;
    digits += c;
  }
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc{} || end == digits.data()) return std::nullopt;
  return value;
}

// Returns the text without ANSI colours.
std::string plain(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

std::optional<LogRow> row_of(std::string_view line, const RowFormat& format) {
  const auto also = line.find(format.also);
  if (also == std::string_view::npos || line.find("validate") < line.size()) return std::nullopt;
  const auto value = number_after(line.substr(also), format.label);
  if (!value || !(*value > 0)) return std::nullopt;
  LogRow row{
      *value * format.unit, number_after(line, "number of skipped iterations:").value_or(0), {}, 0};
  row.steps_per_s = number_after(line, "'train_steps_per_second':").value_or(0);
  row.steps = row.steps_per_s * number_after(line, "'train_runtime':").value_or(0);
  for (const char* label : {"global batch size:", "global_batch_size:"})
    if (const auto batch = number_after(line, label); batch && *batch >= 1)
      row.global_batch = static_cast<std::int64_t>(*batch);
  return row;
}

std::vector<LogRow> rows_in(std::string_view text, const RowFormat& format) {
  std::vector<LogRow> rows;
  int line = 1;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of("\r\n"), text.size());
    if (auto row = row_of(text.substr(0, end), format)) {
      row->line = line;
      rows.push_back(*row);
    }
    line += end < text.size() && text[end] == '\n' ? 1 : 0;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

double deviation_about(std::vector<double> values, double middle) {
  for (double& value : values) value = std::abs(value - middle);
  return scaled * validate::quantile(std::move(values), 0.5);
}

// Returns the values of the steady rows, by the rules in the header.
std::vector<double> steady(const std::vector<LogRow>& rows, StepsLeftOut& without) {
  std::vector<double> values;
  for (const LogRow& row : rows) {
    if (row.skipped != 0)
      ++without.skipped;
    else if (row.global_batch != rows.back().global_batch)
      ++without.other_batches;
    else
      values.push_back(row.value);
  }
  without.first = std::min(warm_up_rows, static_cast<int>(values.size()) / 5);
  values.erase(values.begin(), values.begin() + without.first);
  if (values.empty()) return values;
  const double middle = validate::quantile(values, 0.5);
  const double allowed = std::max(far * deviation_about(values, middle), nearest_outlier * middle);
  without.outliers = static_cast<int>(
      std::erase_if(values, [&](double value) { return std::abs(value - middle) > allowed; }));
  return values;
}

TrainingLog log_of(const LogRows& of, const std::string& file) {
  const std::vector<LogRow>& rows = of.rows;
  TrainingLog log{of.program, of.quantity, 0, 0, 0, 0, rows.back().global_batch, {}, {}};
  const std::vector<double> values =
      of.whole_run ? std::vector{rows.back().value} : steady(rows, log.without);
  if (!of.whole_run && static_cast<int>(values.size()) < fewest_rows)
    fail_input({file, 0, {}},
               fmt::format("holds {} steady step{} of {}", values.size(),
                           values.size() == 1 ? "" : "s", of.program),
               fmt::format("{} and more", fewest_rows));
  log.median = validate::quantile(values, 0.5);
  log.spread = deviation_about(values, log.median) / log.median;
  log.rows = static_cast<int>(values.size());
  log.left_out = static_cast<int>(rows.size()) - log.rows;
  log.line = rows.back().line;
  log.counted = of.counted;
  log.whole_run = of.whole_run;
  if (of.whole_run) log.steps_of_run = std::llround(rows.back().steps);
  if (const double steps = rows.back().steps_per_s; of.whole_run && steps > 0) {
    log.settings.samples_per_step = log.median / steps;
    log.settings.samples_tolerance = short_batches + rounded_rate / steps;
  }
  return log;
}

// Adds the framework of the program that wrote the steps, unless its arguments state one.
void add_framework(TrainingLog& log) {
  const auto* of = std::ranges::find(frameworks, log.program, &ProgramFramework::program);
  if (of == std::end(frameworks) || log.settings.find("framework") != nullptr) return;
  LogSetting setting{"framework", std::string(of->framework),
                     fmt::format("a step of {}", log.program), log.line, std::string(of->also)};
  // A log with a ZeRO stage is from DeepSpeed, since no other program prints one.
  if (!of->also.empty() && log.settings.find("zero_stage") != nullptr)
    std::swap(setting.value, setting.also);
  log.settings.all.push_back(std::move(setting));
}

// Returns the factor from a log's rate to that of the run (metric_file.h).
double job_over_log(const TrainingLog& log, const SourceFigure& figure) {
  if (log.counted == Counted::job) return 1;
  Catalog catalog(std::make_shared<DescriptionTexts>(figure.texts));
  const TrainingPlan run = resolve(figure.what_if, catalog).training;
  const bool batches =
      log.counted == Counted::rank_batches || log.counted == Counted::ranks_batches;
  const bool one = log.counted == Counted::rank || log.counted == Counted::rank_batches;
  return static_cast<double>(run.data_parallel()) / (one ? 1 : run.gpus) *
         (batches ? static_cast<double>(run.batch.micro) : 1);
}

// Formats "25 of 30 steps, without the first 3 and 2 outliers; spread 1.2 %".
std::string steps_counted(const TrainingLog& log) {
  const StepsLeftOut& without = log.without;
  std::vector<std::string> left_out;
  const auto add = [&](int count, std::string_view one, std::string_view many) {
    if (count > 0) left_out.push_back(fmt::format("{} {}", count, count == 1 ? one : many));
  };
  if (without.first > 0) left_out.push_back(fmt::format("the first {}", without.first));
  add(without.outliers, "outlier", "outliers");
  add(without.skipped, "without an update", "without an update");
  add(without.other_batches, "of another batch", "of other batches");
  add(without.earlier_starts, "before the job's last start", "before the job's last start");
  return fmt::format("{} of {} steps{}{}; spread {:.1f} %", log.rows, log.rows + log.left_out,
                     left_out.empty() ? "" : ", without ",
                     fmt::join(left_out, left_out.size() == 2 ? " and " : ", "), 100 * log.spread);
}

// Formats "25 steps of Megatron-LM, spread 1.2 %"; for the Trainer "mean of 500 steps of Hugging
// Face".
std::string steps_of(const TrainingLog& log) {
  if (log.whole_run && log.steps_of_run == 0)
    return fmt::format("mean of a whole run of {}", log.program);
  if (log.whole_run) return fmt::format("mean of {} steps of {}", log.steps_of_run, log.program);
  return fmt::format("{} steps of {}, spread {:.1f} %", log.rows, log.program, 100 * log.spread);
}

}  // namespace

LogSettings settings_of(const TrainingLog& log) {
  LogSettings settings = log.settings;
  if (!log.global_batch) return settings;
  // Uses the batch of the steps; the arguments state the batch at the end of a ramp.
  std::erase_if(settings.all, [](const LogSetting& one) { return one.key == "global_batch"; });
  settings.all.insert(settings.all.begin(), {"global_batch", fmt::format("{}", *log.global_batch),
                                             "the batch of its steps", log.line});
  return settings;
}

TrainingLog read_training_log(std::string_view text, const std::string& file) {
  if (const auto metrics = read_metric_file(text, file)) {
    TrainingLog log = log_of(*metrics, file);
    add_framework(log);
    return log;
  }
  const std::string read = plain(text);
  if (read.find("CurSamplesPerSec=") != read.npos)
    fail_input({file, 0, "CurSamplesPerSec"},
               "is a log of DeepSpeed-Chat: generation and two models share a step",
               "a log of one model");
  for (const RowFormat& format : formats) {
    std::vector<LogRow> rows = rows_in(read, format);
    if (rows.empty()) continue;
    LogSettings settings = read_log_settings(read, file);
    // Steps before the last start of the job may have another layout.
    const std::size_t earlier =
        rows.back().line > settings.begin
            ? std::erase_if(rows, [&](const LogRow& row) { return row.line < settings.begin; })
            : 0;
    TrainingLog log = log_of(
        {std::string(format.program), format.quantity, std::move(rows), format.whole_run}, file);
    settings.samples_per_step = log.settings.samples_per_step;
    settings.samples_tolerance = log.settings.samples_tolerance;
    log.settings = std::move(settings);
    log.without.earlier_starts = static_cast<int>(earlier);
    log.left_out += log.without.earlier_starts;
    add_framework(log);
    return log;
  }
  fail_input(
      {file, 0, {}}, "holds no step that is recognised",
      "a log of Megatron-LM, DeepSpeed, torchtitan, torchtune, NeMo, MaxText, Composer, OLMo "
      "or Hugging Face; trainer_state.json, Lightning's metrics.csv, or --measured "
      "step_time=...");
}

SourceFigure figure_of(const TrainingLog& log, const std::string& file, const WhatIf& what_if,
                       std::string& filled) {
  SourceFigure figure;
  figure.source = "log";
  figure.name = fmt::format("{}: {}", file, steps_of(log));
  figure.quantity = log.quantity;
  figure.measured = log.median;
  figure.standard_error = standard_error_of_median(log.spread, log.rows);
  figure.what_if = what_if;
  filled = fill_from_log(settings_of(log), file, figure);
  if (log.rows > 1) filled += fmt::format("{}: {}\n\n", file, steps_counted(log));
  if (const double factor = job_over_log(log, figure); factor != 1) {
    figure.measured *= factor;
    filled += fmt::format("{} counts ranks: {:.4g} is {:.4g} of the run, by {:.4g}\n\n", file,
                          log.median, figure.measured, factor);
  }
  return figure;
}

}  // namespace lambcast
