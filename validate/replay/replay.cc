#include "validate/replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "embedded/replay_files.h"
#include "models/training/run/forecast.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"

namespace lambcast {
namespace {

Scenario scenario_of(const ReplayCase& replayed, Catalog& catalog) {
  try {
    return resolve(replayed.what_if, catalog);
  } catch (const Error& error) {
    fail_input({replayed.table, replayed.line, replayed.id}, error.what());
  }
}

// Returns the forecast of the figure and its interval.
ReplayResult result_of(const Forecast& forecast, const ReplayCase& replayed) {
  for (const StepForecast& step : forecast.steps) {
    if (name_of(step.kind) != replayed.stage) continue;
    ReplayResult result{replayed};
    if (replayed.quantity == "step_time_ms") {
      result.forecast = step.step_time_us * 1e-3;
      result.low = step.step_time_low_us * 1e-3;
      result.high = step.step_time_high_us * 1e-3;
    } else {
      result.forecast = step.samples_per_s;
      result.low = step.samples_per_s * step.step_time_us / step.step_time_high_us;
      result.high = step.samples_per_s * step.step_time_us / step.step_time_low_us;
    }
    return result;
  }
  fail_input({replayed.table, replayed.line, replayed.id},
             fmt::format("has no stage '{}'", replayed.stage));
}

}  // namespace

std::vector<ReplayCase> parse_cases(std::string_view text, const std::string& name) {
  const csv::Table table = csv::parse(text, name);
  const std::vector<std::string> own{"id", "stage", "quantity", "measured", "role", "max_error"};
  std::vector<ReplayCase> cases;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    ReplayCase replayed;
    replayed.id = table.text(row, "id");
    replayed.table = name;
    replayed.line = table.lines[row];
    replayed.stage = table.text(row, "stage");
    replayed.quantity = table.text(row, "quantity");
    replayed.measured = table.number(row, "measured");
    replayed.max_error = table.number(row, "max_error");
    const std::string& role = table.text(row, "role");
    if (role != "fitted" && role != "unseen")
      fail_input({name, table.lines[row], "role"}, fmt::format("'{}' is not a role", role),
                 "fitted, unseen");
    if (replayed.quantity != "step_time_ms" && replayed.quantity != "samples_per_s")
      fail_input({name, table.lines[row], "quantity"},
                 fmt::format("'{}' is not a quantity", replayed.quantity),
                 "step_time_ms, samples_per_s");
    if (!(replayed.measured > 0))
      fail_input({name, table.lines[row], "measured"}, "must be above zero");
    if (replayed.max_error < 0)
      fail_input({name, table.lines[row], "max_error"}, "must not be negative");
    replayed.fitted = role == "fitted";
    for (std::size_t column = 0; column < table.header.size(); ++column) {
      const std::string& key = table.header[column];
      if (std::find(own.begin(), own.end(), key) == own.end() && !table.rows[row][column].empty())
        replayed.what_if[key] = table.rows[row][column];
    }
    cases.push_back(std::move(replayed));
  }
  if (cases.empty())
    fail_input(
        {name, 0, {}}, "holds no case",
        "rows as validate/replay/published/*.csv; for a log of collectives give --cluster too");
  return cases;
}

std::vector<ReplayCase> published_cases() {
  std::vector<ReplayCase> all;
  for (const EmbeddedFile& file : replay_files()) {
    std::string name(file.name.substr(file.name.rfind('/') + 1));
    for (ReplayCase& replayed : parse_cases(file.text, name)) all.push_back(std::move(replayed));
  }
  return all;
}

ReplayCase canary_case() {
  ReplayCase canary = published_cases().front();
  canary.id = "canary";
  canary.measured *= 2;
  canary.fitted = false;
  return canary;
}

ReplaySummary replay(const std::vector<ReplayCase>& cases) {
  ReplaySummary summary;
  Catalog catalog;
  CollectiveCosts costs;
  std::vector<double> errors;
  summary.within = true;
  for (const ReplayCase& replayed : cases) {
    ReplayResult result =
        result_of(forecast(scenario_of(replayed, catalog).training, costs), replayed);
    result.error = result.forecast / replayed.measured - 1;
    result.within = std::abs(result.error) <= replayed.max_error;
    summary.within = summary.within && result.within;
    errors.push_back(std::abs(result.error));
    summary.results.push_back(std::move(result));
  }
  summary.median_error = errors.empty() ? 0 : validate::quantile(errors, 0.5);
  summary.worst_error = errors.empty() ? 0 : *std::max_element(errors.begin(), errors.end());
  summary.within = summary.within && summary.median_error <= max_median_error;
  return summary;
}

std::optional<double> median_error_of(const ReplaySummary& summary, bool fitted) {
  std::vector<double> errors;
  for (const ReplayResult& result : summary.results)
    if (result.of.fitted == fitted) errors.push_back(std::abs(result.error));
  if (errors.empty()) return std::nullopt;
  return validate::quantile(errors, 0.5);
}

bool inside_interval(const ReplayResult& result) {
  return result.low <= result.of.measured && result.of.measured <= result.high;
}

Coverage coverage_of(const ReplaySummary& summary, bool fitted) {
  Coverage covered;
  for (const ReplayResult& result : summary.results) {
    if (result.of.fitted != fitted) continue;
    ++covered.rows;
    covered.inside += inside_interval(result) ? 1 : 0;
  }
  return covered;
}

double median_interval(const ReplaySummary& summary) {
  std::vector<double> ends;
  for (const ReplayResult& result : summary.results)
    ends.push_back(std::sqrt(result.high / result.low) - 1);
  return validate::quantile(ends, 0.5);
}

std::string replay_table(const ReplaySummary& summary) {
  std::string out = fmt::format("{:<28} {:<13} {:>8} {:>8} {:>6} {:>5} role\n", "case", "quantity",
                                "measured", "forecast", "error", "limit");
  std::string table;
  for (const ReplayResult& result : summary.results) {
    if (result.of.table != table) out += (table = result.of.table) + "\n";
    out +=
        fmt::format("  {:<26} {:<13} {:>8.1f} {:>8.1f} {:>+5.1f}% {:>4.0f}% {}{}{}\n", result.of.id,
                    result.of.quantity, result.of.measured, result.forecast, result.error * 100,
                    result.of.max_error * 100, result.of.fitted ? "fitted" : "unseen",
                    result.within ? "" : "  PAST ITS LIMIT",
                    inside_interval(result) ? "" : "  outside its interval");
  }
  out += fmt::format("\n{} cases: median {:.1f}% (limit {:.0f}%), worst {:.1f}%: {}\n",
                     summary.results.size(), summary.median_error * 100, max_median_error * 100,
                     summary.worst_error * 100, summary.within ? "within limits" : "PAST LIMITS");
  for (const bool fitted : {true, false}) {
    const Coverage covered = coverage_of(summary, fitted);
    if (covered.rows > 0)
      out += fmt::format(
          "{} of {} {} figures lie inside the interval of their forecast (grade {}).\n",
          covered.inside, covered.rows, fitted ? "fitted" : "unseen", fitted ? 'R' : 'U');
  }
  out += role_legend;
  if (!summary.results.empty())
    out += fmt::format("The ends of these intervals are {:.0f}% away in the median.\n",
                       100 * median_interval(summary));
  return out;
}

std::string replay_csv(const ReplaySummary& summary) {
  std::string out =
      "table,case,role,model,cluster,optimizer,gpus,stage,quantity,measured,forecast,error,"
      "max_error,within,low,high\n";
  for (const ReplayResult& result : summary.results) {
    const auto asked = [&](const char* key) {
      const auto found = result.of.what_if.find(key);
      return found == result.of.what_if.end() ? std::string() : found->second;
    };
    out += csv::row({result.of.table, result.of.id, result.of.fitted ? "fitted" : "unseen",
                     asked("model"), asked("cluster"), asked("optimizer"), asked("gpus"),
                     result.of.stage, result.of.quantity, csv::number(result.of.measured),
                     csv::number(result.forecast), csv::number(result.error),
                     csv::number(result.of.max_error), result.within ? "yes" : "no",
                     csv::number(result.low), csv::number(result.high)}) +
           "\n";
  }
  return out;
}

}  // namespace lambcast
