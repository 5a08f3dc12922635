#include "validate/replay/log_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/scenario/catalog.h"
#include "validate/calibrate/fitted_tables.h"

namespace lambcast {
namespace {

// A median of measured / forecast within this distance of 1 is reported as equal.
constexpr double about_equal = 0.05;

// Returns the fingerprints of all rows that a description was fitted to.
std::set<std::string> rows_fitted_to(const std::string& cluster) {
  DescriptionTexts texts;
  const validate::FitOrigin origin = validate::fit_origin(texts.cluster(cluster), cluster);
  std::set<std::string> all(origin.rows.begin(), origin.rows.end());
  const std::set<std::string> sources(origin.sources.begin(), origin.sources.end());
  for (const CollectiveCase& carried : carried_collectives()) {
    if (!carried.fitted) continue;
    const validate::FitOrigin preset =
        validate::fit_origin(texts.cluster(carried.cluster), carried.cluster);
    if (preset.sources.empty() || !sources.contains(preset.sources.front())) continue;
    for (const validate::Row& row : carried.measured.rows)
      all.insert(validate::fingerprint(carried.measured, row));
  }
  return all;
}

// Formats a sentence with the median of measured / forecast.
std::string comparison_text(const CollectiveResult& result) {
  std::vector<double> ratios;
  for (std::size_t row = 0; row < result.forecast.size(); ++row)
    ratios.push_back(result.of.measured.rows[row].time / result.forecast[row]);
  const double ratio = validate::quantile(ratios, 0.5);
  const std::string_view operation = name_of(result.of.measured.operation);
  if (std::abs(ratio - 1) <= about_equal)
    return fmt::format("your {} takes what this description forecasts, within {:.0f} %", operation,
                       100 * about_equal);
  return ratio > 1 ? fmt::format("your {} takes {:.3g} times what this description forecasts",
                                 operation, ratio)
                   : fmt::format("your {} is {:.3g} times as fast as this description forecasts",
                                 operation, 1 / ratio);
}

}  // namespace

std::vector<CollectiveCase> log_cases(std::vector<validate::Measurement> tables,
                                      const std::string& name, const std::string& cluster,
                                      std::optional<Backend> backend) {
  const std::set<std::string> rows = rows_fitted_to(cluster);
  std::vector<CollectiveCase> cases;
  for (validate::Measurement& table : tables) {
    const auto is_fitted = [&](const validate::Row& row) {
      return rows.contains(validate::fingerprint(table, row));
    };
    validate::Measurement fitted = table;
    std::erase_if(fitted.rows, [&](const validate::Row& row) { return !is_fitted(row); });
    std::erase_if(table.rows, is_fitted);
    for (auto& [part, was_fitted] : {std::pair(&fitted, true), std::pair(&table, false)})
      if (!part->rows.empty())
        cases.push_back({name, cluster, was_fitted, std::move(*part), backend});
  }
  return cases;
}

std::string log_replay_table(const CollectiveSummary& summary) {
  std::string out;
  for (const CollectiveResult& result : summary.results) {
    out += fmt::format("{} (median of {} rows, {} ranks, {})\n", comparison_text(result),
                       result.forecast.size(), result.of.measured.ranks, role_of(result.of));
    out += fmt::format("{:>14} {:>14} {:>14} {:>10} {:>8}\n", "size (B)", "measured (us)",
                       "forecast (us)", "error", "90 %");
    for (std::size_t row = 0; row < result.forecast.size(); ++row) {
      const auto& [size, time, spread] = result.of.measured.rows[row];
      const auto& interval = result.interval[row];
      const bool inside = interval.low <= time && time <= interval.high;
      out += fmt::format("{:>14.0f} {:>14.2f} {:>14.2f} {:>+9.1f}% {:>8}\n", size.value(),
                         time.us(), result.forecast[row].us(),
                         100 * (result.forecast[row] / time - 1), inside ? "inside" : "outside");
    }
  }
  return out;
}

}  // namespace lambcast
