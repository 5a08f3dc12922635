#include "validate/replay/log_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/catalog.h"
#include "validate/calibrate/fitted_tables.h"

namespace lambcast {
namespace {

// Medians closer than this to 1 are called equal.
constexpr double about_equal = 0.05;

std::vector<std::string> fitted_to(const std::string& cluster) {
  DescriptionTexts texts;
  std::vector<std::string> all = validate::fitted_tables(texts.cluster(cluster), cluster);
  for (const CollectiveCase& carried : carried_collectives())
    if (carried.fitted && carried.cluster == cluster)
      all.push_back(validate::fingerprint(carried.measured));
  return all;
}

// The median of measured / forecast in words.
std::string comparison_text(const CollectiveResult& result) {
  std::vector<double> ratios;
  for (std::size_t row = 0; row < result.forecast.size(); ++row)
    ratios.push_back(result.of.measured.rows[row].time / result.forecast[row]);
  const double ratio = validate::quantile(ratios, 0.5);
  const std::string_view operation = name_of(result.of.measured.operation);
  if (std::abs(ratio - 1) <= about_equal)
    return fmt::format("your {} takes what this description forecasts, within {:.0f} %", operation,
                       100 * about_equal);
  return fmt::format("your {} takes {:.3g} times what this description forecasts", operation,
                     ratio);
}

}  // namespace

std::vector<CollectiveCase> log_cases(std::vector<validate::Measurement> tables,
                                      const std::string& name, const std::string& cluster,
                                      std::optional<Backend> backend) {
  const std::vector<std::string> fitted = fitted_to(cluster);
  std::vector<CollectiveCase> cases;
  for (validate::Measurement& table : tables) {
    const bool is_fitted = std::ranges::find(fitted, validate::fingerprint(table)) != fitted.end();
    cases.push_back({name, cluster, is_fitted, std::move(table), backend});
  }
  return cases;
}

std::string log_replay_table(const CollectiveSummary& summary) {
  std::string out;
  for (const CollectiveResult& result : summary.results) {
    out += fmt::format("{} (median of {} rows, {} ranks, {})\n", comparison_text(result),
                       result.forecast.size(), result.of.measured.ranks, role_of(result.of));
    out += fmt::format("{:>14} {:>14} {:>14} {:>10} {:>8}\n", "size (B)", "measured (us)",
                       "forecast (us)", "measured", "90 %");
    for (std::size_t row = 0; row < result.forecast.size(); ++row) {
      const auto& [size, time, spread] = result.of.measured.rows[row];
      const auto& interval = result.interval[row];
      const bool inside = interval.low <= time && time <= interval.high;
      out += fmt::format("{:>14.0f} {:>14.2f} {:>14.2f} {:>+9.1f}% {:>8}\n", size.value(),
                         time.us(), result.forecast[row].us(),
                         100 * (time / result.forecast[row] - 1), inside ? "inside" : "outside");
    }
  }
  return out;
}

}  // namespace lambcast
