#include "validate/replay/registered.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "sim/base/counted.h"
#include "sim/base/error.h"
#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

const char* const forecast_columns[] = {"step_time_s", "low_s", "high_s"};

std::set<std::string> cases_of(const csv::Table& table) {
  std::set<std::string> cases;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (!cases.insert(table.text(row, "case")).second)
      fail_input({table.name, table.lines[row], "case"},
                 fmt::format("'{}' occurs twice", table.text(row, "case")));
  return cases;
}

// Returns the table with a measured step of 1 s, which figures_of_runs() requires.
csv::Table with_measured_step(csv::Table table) {
  table.header.emplace_back("step_time_s");
  for (auto& row : table.rows) row.emplace_back("1");
  return table;
}

}  // namespace

std::string register_forecasts(std::string_view questions, const std::string& file,
                               const std::string& stamp) {
  const csv::Table table = csv::parse(questions, file);
  cases_of(table);
  for (const char* column : forecast_columns)
    if (table.has(column))
      fail_input({file, 0, column}, "is added when a forecast is registered; remove it",
                 "what-if keys and case");
  const std::vector<SourceResult> results =
      replay_figures(figures_of_runs(with_measured_step(table)));
  std::string text = fmt::format("# {}\n", stamp);
  for (const std::string& comment : table.comments) text += comment + "\n";
  std::vector<std::string> fields = table.header;
  fields.insert(fields.end(), std::begin(forecast_columns), std::end(forecast_columns));
  text += csv::row(fields) + "\n";
  for (std::size_t row = 0; row < results.size(); ++row) {
    const SourceResult& result = results[row];
    if (!result.ok()) fail_input({file, table.lines[row], {}}, result.status);
    fields = table.rows[row];
    for (const double seconds : {result.forecast, *result.low, *result.high})
      fields.push_back(fmt::format("{:.5g}", seconds));
    text += csv::row(fields) + "\n";
  }
  return text;
}

RegisteredScore score_registered(std::string_view registered, const std::string& file,
                                 std::string_view measured, const std::string& measured_file) {
  const csv::Table forecasts = csv::parse(registered, file);
  const csv::Table truth = csv::parse(measured, measured_file);
  const std::set<std::string> known = cases_of(forecasts);
  cases_of(truth);
  std::map<std::string, double> step_s;
  for (std::size_t row = 0; row < truth.rows.size(); ++row) {
    const std::string& name = truth.text(row, "case");
    if (!known.contains(name))
      fail_unknown({measured_file, truth.lines[row], "case"}, "registered case", name,
                   std::vector<std::string>(known.begin(), known.end()));
    const double seconds = truth.number(row, "step_time_s");
    if (!(seconds > 0))
      fail_input({measured_file, truth.lines[row], "step_time_s"}, "must be above zero");
    step_s[name] = seconds;
  }
  RegisteredScore score;
  if (!forecasts.comments.empty()) score.stamp = forecasts.comments.front();
  for (std::size_t row = 0; row < forecasts.rows.size(); ++row) {
    const std::string& name = forecasts.text(row, "case");
    if (!step_s.contains(name)) {
      score.waiting.push_back(name);
      continue;
    }
    SourceResult& result = score.results.emplace_back();
    result.of.name = name;
    result.of.measured = step_s.at(name);
    result.status = "ok";
    result.forecast = forecasts.number(row, "step_time_s");
    result.low = forecasts.number(row, "low_s");
    result.high = forecasts.number(row, "high_s");
    result.error = result.forecast / result.of.measured - 1;
  }
  score.score = score_of(score.results);
  return score;
}

std::string registered_table(const RegisteredScore& score) {
  std::string text = score.stamp + "\n";
  for (const SourceResult& result : score.results)
    text += fmt::format(
        "  {:<44} measured {:>8.4g} s  forecast {:>8.4g} s ({:.4g} to {:.4g})  "
        "{:+.1f} %{}\n",
        result.of.name, result.of.measured, result.forecast, *result.low, *result.high,
        100 * result.error, result.inside() ? "" : "  outside");
  if (!score.results.empty())
    text += fmt::format("{} (grade F): median error {:.1f} %, {} inside their intervals\n",
                        counted(score.score.rows, "registered forecast"), 100 * score.score.median,
                        score.score.inside);
  return text + fmt::format("{} not measured yet\n", counted(score.waiting.size(), "case"));
}

}  // namespace lambcast
