#include "experiments/output/metric.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/pass_efficiency.h"

namespace lambcast {
namespace {

using Value = std::optional<MetricValue>;

Value run_time(const TrainingPlan&, const Forecast& forecast) {
  const RunForecast& run = forecast.run;
  return MetricValue{run.time_s, run.time_low_s, run.time_high_s};
}

Value gpu_hours(const TrainingPlan&, const Forecast& forecast) {
  const RunForecast& run = forecast.run;
  const double hours = run.gpu_hours / run.time_s;
  return MetricValue{run.gpu_hours, run.time_low_s * hours, run.time_high_s * hours};
}

Value cost(const TrainingPlan&, const Forecast& forecast) {
  const RunForecast& run = forecast.run;
  if (!run.cost_usd) return std::nullopt;
  return MetricValue{*run.cost_usd, run.cost_at(run.time_low_s), run.cost_at(run.time_high_s)};
}

Value speedup(const TrainingPlan&, const Forecast& forecast) {
  if (!forecast.run.speedup) return std::nullopt;
  const RatioInterval& speedup = *forecast.run.speedup;
  return MetricValue{speedup.value, speedup.low, speedup.high};
}

// Returns the rate of `all` per second, with an interval from both ends of the run time.
Value rate(const RunForecast& run, double all) {
  return MetricValue{all / run.time_s, all / run.time_high_s, all / run.time_low_s};
}

Value samples_per_s(const TrainingPlan&, const Forecast& forecast) {
  return rate(forecast.run, forecast.run.samples_per_s * forecast.run.time_s);
}

Value tokens_per_s(const TrainingPlan& training, const Forecast& forecast) {
  if (training.seq_len == 0) return std::nullopt;
  double tokens = 0;
  for (const StepForecast& step : forecast.steps)
    tokens += step.tokens_per_s * step.step_time_us * 1e-6 * static_cast<double>(step.steps);
  return rate(forecast.run, tokens);
}

// Returns the mean of `part` over all steps.
template <typename Part>
double mean_us(const Forecast& forecast, Part part) {
  double sum = 0;
  for (const StepForecast& step : forecast.steps)
    sum += part(step) * static_cast<double>(step.steps);
  return sum / static_cast<double>(forecast.run.steps);
}

double step_us(const Forecast& forecast) {
  return mean_us(forecast, [](const StepForecast& step) { return step.step_time_us; });
}

Value step_time(const TrainingPlan&, const Forecast& forecast) {
  const RunForecast& run = forecast.run;
  const auto steps = static_cast<double>(run.steps);
  return MetricValue{run.time_s / steps, run.time_low_s / steps, run.time_high_s / steps};
}

Value exposed(const TrainingPlan&, const Forecast& forecast) {
  const double us =
      mean_us(forecast, [](const StepForecast& of) { return part_times(of)[PartGroup::wire]; });
  return MetricValue{us / step_us(forecast), {}, {}};
}

// Splits the effect of each source of error between useful work and lost time. Kernels of a 1-bit
// optimizer add to both, in proportion to their times. Communication that a longer pass hides
// counts as work. Longer passes of a layout also prolong its bubble, so they are left out here and
// priced again.
RatioInterval useful_share(const TrainingPlan& training, const Forecast& forecast, double useful) {
  const auto mean_of = [&](PartGroup part) {
    return mean_us(forecast, [&](const StepForecast& of) { return part_times(of)[part]; });
  };
  const double compression = mean_of(PartGroup::compression);
  const double update = mean_of(PartGroup::optimizer);
  TimeAtEnds work = forecast.time, whole = forecast.time;
  work.s = useful * forecast.time.s;
  for (std::size_t i = 0; i < error_sources; ++i) {
    const ErrorOf of = what_errs(i);
    if (training.parallelism && of == ErrorOf::passes) whole.at[i] = {whole.s, whole.s};
    const double share = of == ErrorOf::passes || of == ErrorOf::plain_kernels ? 1
                         : of == ErrorOf::onebit_kernels && update > 0
                             ? update / (update + compression)
                             : 0;
    work.at[i].low_s = work.s + share * (whole.at[i].low_s - whole.s);
    work.at[i].high_s = work.s + share * (whole.at[i].high_s - whole.s);
  }
  return ratio_of(work, whole);
}

Value efficiency(const TrainingPlan& training, const Forecast& forecast) {
  const double lost = mean_us(forecast, [](const StepForecast& step) {
    const PartTimes parts = part_times(step);
    return parts[PartGroup::wire] + parts[PartGroup::compression] + parts[PartGroup::bubble];
  });
  const double useful = 1 - lost / step_us(forecast);
  const RatioInterval others = useful_share(training, forecast, useful);
  const PassError passes =
      training.parallelism ? pass_error(training, useful, step_us(forecast) * 1e-6) : PassError();
  const double below = std::hypot(std::log(useful / others.low), passes.below);
  const double above = std::hypot(std::log(others.high / useful), passes.above);
  return MetricValue{useful, useful * std::exp(-below), std::min(1.0, useful * std::exp(above))};
}

Value memory(const TrainingPlan&, const Forecast& forecast) {
  return MetricValue{forecast.memory.peak.value(), {}, {}};
}

constexpr double most = 1e15;  // largest target of any metric

double parse_plain(std::string_view text, const Where& where) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (status != std::errc{} || !(number > 0) || !(rest.empty() || rest == "x"))
    fail_input(where, fmt::format("'{}' is not a number above zero", text));
  if (number > most) fail_input(where, fmt::format("'{}' is too large", text), "up to 1e15");
  return number;
}

// Parses "300", "300 USD" or "300USD".
double parse_usd(std::string_view text, const Where& where) {
  if (text.ends_with("USD")) text.remove_suffix(3);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return parse_plain(text, where);
}

double parse_share(std::string_view text, const Where& where) {
  const bool percent = text.ends_with('%');
  const double number = parse_plain(percent ? text.substr(0, text.size() - 1) : text, where);
  const double share = percent ? number / 100 : number;
  if (share > 1) fail_input(where, fmt::format("'{}' is not a share", text), "90% or 0.9");
  return share;
}

double parse_time(std::string_view text, const Where& where) {
  if (text.ends_with('d')) return 86400 * parse_plain(text.substr(0, text.size() - 1), where);
  const double s = parse_duration(text, where).s();
  if (!(s > 0)) fail_input(where, "must be above zero", "a time such as 90min or 20h");
  return s;
}

double parse_memory(std::string_view text, const Where& where) {
  return parse_bytes(text, where).value();
}

std::string times_text(double value) { return fmt::format("{:.3f}x", value); }
std::string percent_text(double value) { return fmt::format("{:.1f} %", 100 * value); }
std::string usd_text(double value) { return usd_cell(value) + " USD"; }
std::string bytes_text(double value) { return to_text(Bytes(value)); }
std::string bytes_cell_of(double value) { return bytes_cell(Bytes(value)); }

constexpr std::array<Metric, 11> all{{
    {"run_time", "s", "of the whole run", true, run_time, parse_time, run_time_text, time_cell},
    {"step_time", "s", "mean over the run's steps", true, step_time, parse_time, run_time_text,
     time_cell},
    {"speedup", "", "against the plain optimizer", false, speedup, parse_plain, times_text,
     times_text},
    {"cost", "USD", "of the run, where the cluster has a price", true, cost, parse_usd, usd_text,
     usd_text},
    {"gpu_hours", "h", "of the run", true, gpu_hours, parse_plain, number_cell, number_cell},
    {"samples_per_s", "1/s", "mean over the run", false, samples_per_s, parse_plain, number_cell,
     number_cell},
    {"tokens_per_s", "1/s", "mean over the run", false, tokens_per_s, parse_plain, number_cell,
     number_cell},
    {"efficiency", "",
     "share of the step that is not lost to exposed communication, compression or bubbles", false,
     efficiency, parse_share, percent_text, percent_text},
    {"exposed", "", "share of the step in which communication is exposed", true, exposed,
     parse_share, percent_text, percent_text},
    {"memory", "B", "peak of a GPU", true, memory, parse_memory, bytes_text, bytes_cell_of},
    {"wire_bytes", "B", "sent by a GPU over the run", true,
     [](const TrainingPlan&, const Forecast& forecast) -> Value {
       return MetricValue{forecast.run.wire_bytes_per_gpu, {}, {}};
     },
     parse_memory, bytes_text, bytes_cell_of},
}};

}  // namespace

std::span<const Metric> metrics() { return all; }

const Metric& find_metric(std::string_view name, const Where& where) {
  std::vector<std::string> names;
  for (const Metric& metric : all) {
    if (metric.name == name) return metric;
    names.emplace_back(metric.name);
  }
  fail_unknown(where, "metric", name, names);
}

}  // namespace lambcast
