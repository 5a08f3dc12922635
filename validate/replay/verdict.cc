#include "validate/replay/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace lambcast {
namespace {

constexpr std::size_t most_misses = 5;

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string on_limits(const Validation& validation) {
  const std::vector<std::string> missed = misses(validation);
  if (!missed.empty()) {
    std::string text = fmt::format(
        "PAST LIMITS: {}", fmt::join(missed.begin(),
                                     missed.begin() + static_cast<std::ptrdiff_t>(
                                                          std::min(missed.size(), most_misses)),
                                     "; "));
    if (missed.size() > most_misses)
      text += fmt::format("; and {} more", missed.size() - most_misses);
    return text + ".";
  }
  if (!validation.training && !validation.sources && validation.collectives->limits.empty())
    return "No limit was asked for, so none is missed.";
  return "Within limits: nothing that is held to a limit misses it.";
}

std::string on_training(const ReplaySummary& training) {
  const auto worst = std::max_element(
      training.results.begin(), training.results.end(),
      [](const auto& a, const auto& b) { return std::abs(a.error) < std::abs(b.error); });
  std::set<std::string> clusters;
  for (const ReplayResult& result : training.results)
    if (const auto cluster = result.of.what_if.find("cluster"); cluster != result.of.what_if.end())
      clusters.insert(cluster->second);
  const auto within = std::count_if(training.results.begin(), training.results.end(),
                                    [](const auto& result) { return result.within; });
  std::string text = fmt::format(
      "Training: {} of {} on {} within {} own limits, median error {} (limit {}), the worst {} "
      "({}, limit {}).",
      within, counted(training.results.size(), "figure"), counted(clusters.size(), "cluster"),
      training.results.size() == 1 ? "its" : "their", percent(training.median_error),
      percent(max_median_error), signed_percent(worst->error), worst->of.id,
      percent(worst->of.max_error));
  const auto fitted = std::count_if(training.results.begin(), training.results.end(),
                                    [](const auto& result) { return result.of.fitted; });
  const auto role = [&](bool is_fitted) {
    const std::optional<double> median = median_error_of(training, is_fitted);
    return median ? fmt::format(" (median {})", percent(*median)) : std::string();
  };
  const Coverage of_fitted = coverage_of(training, true), of_unseen = coverage_of(training, false);
  return text + fmt::format(
                    " {} set a parameter of their cluster, \"fitted\"{}; {} did not, "
                    "\"unseen\"{}. {} of the fitted and {} of the unseen lie inside the interval "
                    "of their forecast, whose ends are {} away in the median.",
                    fitted, role(true),
                    static_cast<std::ptrdiff_t>(training.results.size()) - fitted, role(false),
                    of_fitted.inside, of_unseen.inside, percent(median_interval(training)));
}

std::string on_sources(const SourceSummary& sources) {
  const ErrorScore& all = sources.all;
  return fmt::format(
      "Tables of training runs: {} of {}, median error {}, 90th percentile {}, median of their "
      "medians {}; {} of {} lie inside their intervals, {} where sources weigh alike, at an "
      "interval "
      "score of {:.2f}; {} cannot be forecast yet, each with its "
      "reason.",
      counted(static_cast<std::size_t>(all.rows), "figure"),
      counted(sources.sources.size(), "source"), percent(all.median), percent(all.p90),
      percent(sources.of_medians), all.inside, all.with_interval, percent(sources.coverage),
      sources.interval_score, all.refused);
}

// Formats a median: "4.2% (below 64 KiB 4.1%, 4 MiB and more 3.3%)".
std::string median_text(const RoleErrors& of) {
  std::vector<std::string> bands;
  for (const validate::BandError& band : of.bands)
    bands.push_back(fmt::format("{} {}", band.band, percent(band.median)));
  return fmt::format("median error {} ({})", percent(of.median), fmt::join(bands, ", "));
}

std::string worst_row(const CollectiveSummary& collectives) {
  const CollectiveResult* worst = &collectives.results.front();
  std::size_t at = 0;
  for (const CollectiveResult& result : collectives.results)
    for (std::size_t row = 0; row < result.forecast.size(); ++row)
      if (std::abs(error_of(result, row)) > std::abs(error_of(*worst, at)))
        worst = &result, at = row;
  return fmt::format("The worst row is off by {} ({} of {:.0f} bytes on {})",
                     signed_percent(error_of(*worst, at)), name_of(worst->of.measured.operation),
                     worst->of.measured.rows[at].size.value(), worst->of.cluster);
}

std::string on_collectives(const CollectiveSummary& collectives) {
  std::set<std::string> clusters;
  for (const CollectiveResult& result : collectives.results) clusters.insert(result.of.cluster);
  const std::vector<RoleErrors> roles = errors_by_role(collectives);
  std::string text =
      fmt::format("Collectives: {} in {} from {}, {}. {}.",
                  counted(static_cast<std::size_t>(collectives.rows), "row"),
                  counted(collectives.results.size(), "table"), counted(clusters.size(), "cluster"),
                  median_text(roles.front()), worst_row(collectives));
  for (std::size_t i = 1; i < roles.size(); ++i)
    text += fmt::format(" {}, {}: {}.", roles[i].role == "fitted" ? "Fitted" : "Unseen",
                        counted(static_cast<std::size_t>(roles[i].tables), "table"),
                        median_text(roles[i]));
  if (collectives.rows_held < collectives.rows)
    text += fmt::format(" Limits hold {} of the {} rows; the others are shown and not held.",
                        collectives.rows_held, collectives.rows);
  return text;
}

std::string on_own_model(const OwnModelScore& score) {
  return fmt::format(
      "NCCL's own model with its built-in constants, which is not fitted to anything here, is "
      "worse on {} of the {} it covers: its median is {}, that of these forecasts {}.",
      score.better, counted(static_cast<std::size_t>(score.tables), "table"),
      percent(score.own_median), percent(score.forecast_median));
}

}  // namespace

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

std::string signed_percent(double share) { return fmt::format("{:+.1f}%", share * 100); }

std::string table_name(const std::string& file) { return file.substr(0, file.rfind(".csv")); }

bool within(const Validation& validation) {
  return (!validation.training || validation.training->within) &&
         (!validation.collectives || validation.collectives->within) &&
         (!validation.sources || validation.sources->within);
}

OwnModelScore own_model_score(const CollectiveSummary& summary) {
  OwnModelScore score;
  std::vector<double> forecast, own;
  for (const CollectiveResult& result : summary.results) {
    if (!result.nccl_median) continue;
    ++score.tables;
    if (result.of.fitted) ++score.fitted;
    if (result.median_error < *result.nccl_median) ++score.better;
    forecast.push_back(result.median_error);
    own.push_back(*result.nccl_median);
  }
  if (score.tables == 0) return score;
  score.forecast_median = validate::quantile(forecast, 0.5);
  score.own_median = validate::quantile(own, 0.5);
  return score;
}

std::vector<std::string> misses(const Validation& validation) {
  std::vector<std::string> missed;
  if (validation.training) {
    for (const ReplayResult& result : validation.training->results)
      if (!result.within)
        missed.push_back(fmt::format("{}, {}: {} (limit {})", result.of.table, result.of.id,
                                     signed_percent(result.error), percent(result.of.max_error)));
    if (validation.training->median_error > max_median_error)
      missed.push_back(fmt::format("median of the training figures: {} (limit {})",
                                   percent(validation.training->median_error),
                                   percent(max_median_error)));
  }
  if (validation.sources) {
    for (const SourceScore& source : validation.sources->sources)
      if (!source.within)
        missed.push_back(fmt::format("{}: median {}, 90th percentile {}", source.source,
                                     percent(source.time.median), percent(source.time.p90)));
  }
  if (!validation.collectives) return missed;
  for (const LimitResult& checked : validation.collectives->limits) {
    if (checked.within) continue;
    std::string what =
        fmt::format("{}{}{}, {}: median {} (limit {})", checked.cluster,
                    checked.of.role.empty() ? "" : " ", checked.of.role, range_text(checked.of),
                    percent(checked.median), percent(checked.of.max_median));
    if (checked.of.max_p90)
      what += fmt::format(", 90th percentile {} (limit {})", percent(checked.p90),
                          percent(*checked.of.max_p90));
    missed.push_back(std::move(what));
  }
  return missed;
}

std::vector<std::string> verdict_of(const Validation& validation) {
  std::vector<std::string> sentences{on_limits(validation)};
  if (validation.training) sentences.push_back(on_training(*validation.training));
  if (validation.sources) sentences.push_back(on_sources(*validation.sources));
  if (!validation.collectives) return sentences;
  sentences.push_back(on_collectives(*validation.collectives));
  const OwnModelScore score = own_model_score(*validation.collectives);
  if (score.tables > 0) sentences.push_back(on_own_model(score));
  return sentences;
}

}  // namespace lambcast
