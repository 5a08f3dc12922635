#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "topologies/calibration.h"
#include "validate/replay/axes.h"
#include "validate/replay/figures.h"

namespace lambcast {
namespace {

// Errors at which reference lines are drawn, on both sides.
constexpr double margin = 0.25;
// An error of zero cannot be drawn on a logarithmic axis.
constexpr double least_error = 0.001;

using Results = std::vector<const CollectiveResult*>;

Results all_results(const CollectiveSummary& summary) {
  Results results;
  for (const CollectiveResult& result : summary.results) results.push_back(&result);
  return results;
}

Kinds kinds_by(const CollectiveSummary& summary,
               const std::function<std::string(const CollectiveResult&)>& kind) {
  std::vector<std::string> names;
  for (const CollectiveResult& result : summary.results) names.push_back(kind(result));
  return kinds_of(names);
}

std::string fabric(const CollectiveResult& result) { return result.fabric; }

std::string operation(const CollectiveResult& result) {
  return std::string(name_of(result.of.measured.operation));
}

struct Ranges {
  std::vector<double> sizes, ratios, times_us;
};

Ranges ranges_of(const CollectiveSummary& summary) {
  Ranges ranges;
  for (const CollectiveResult& result : summary.results) {
    for (std::size_t row = 0; row < result.forecast.size(); ++row) {
      const validate::Row& measured = result.of.measured.rows[row];
      ranges.sizes.push_back(measured.size.value());
      ranges.ratios.push_back(1 + error_of(result, row));
      ranges.times_us.insert(ranges.times_us.end(),
                             {measured.time.us(), result.forecast[row].us()});
    }
  }
  return ranges;
}

// Adds a size band to the axis: its median as a shaded range of errors, and its upper end.
void add_band(ScatterPanel& panel, const validate::BandError& band, bool with_number) {
  const auto place = std::find(band_names.begin(), band_names.end(), band.band);
  const std::size_t index = static_cast<std::size_t>(place - band_names.begin());
  const double edges[] = {panel.x.low, small_below, medium_below, panel.x.high};
  const double from = std::clamp(edges[index], panel.x.low, panel.x.high);
  const double below = std::clamp(edges[index + 1], panel.x.low, panel.x.high);
  panel.guides.push_back({from, std::max(1 - band.median, panel.y.low), below,
                          std::min(1 + band.median, panel.y.high), Guide::Kind::area});
  if (with_number)
    panel.notes.push_back({std::sqrt(from * below),
                           panel.y.high / std::pow(panel.y.high / panel.y.low, 0.03),
                           fmt::format("median {}", percent(band.median))});
}

ScatterPanel error_panel(const Results& results, const Ranges& ranges, const Kinds& kinds,
                         const std::function<std::string(const CollectiveResult&)>& kind,
                         const std::vector<validate::BandError>& bands, bool with_numbers) {
  ScatterPanel panel;
  panel.x = size_axis(with_numbers ? "size" : "size (bytes)", ranges.sizes, !with_numbers);
  panel.y = ratio_axis(with_numbers ? "forecast / measured - 1" : "error", ranges.ratios);
  for (const validate::BandError& band : bands) add_band(panel, band, with_numbers);
  for (const double edge : {small_below, medium_below})
    if (edge > panel.x.low && edge < panel.x.high)
      panel.guides.push_back({edge, panel.y.low, edge, panel.y.high, Guide::Kind::dashes});
  panel.guides.push_back({panel.x.low, 1, panel.x.high, 1, Guide::Kind::line});
  panel.groups = groups_of(kinds);
  for (const CollectiveResult* result : results)
    for (std::size_t row = 0; row < result->forecast.size(); ++row)
      group_of(panel.groups, kinds, kind(*result), result->of.fitted)
          .dots.push_back({result->of.measured.rows[row].size.value(), 1 + error_of(*result, row),
                           table_name(result->of.name)});
  return panel;
}

// Returns the clusters, those with the most rows first.
std::vector<std::string> clusters_of(const CollectiveSummary& summary) {
  std::vector<std::string> names;
  for (const CollectiveResult& result : summary.results)
    names.insert(names.end(), result.forecast.size(), result.of.cluster);
  return kinds_of(names).names;
}

constexpr const char* reading =
    "The shaded range holds half of the rows of its band of size: it is the median of "
    "|forecast / measured - 1| either way. Dashed lines part the bands, at 64 KiB and 4 MiB.";

}  // namespace

report::Figure collective_figure(const CollectiveSummary& summary) {
  report::Figure figure;
  figure.name = "collectives";
  figure.title = "Collectives: forecast against measured time";
  figure.caption = fmt::format(
      "Each mark is one size of one table, {} in all; on the diagonal the forecast equals the "
      "measurement, the dashed lines are {:.0f}% above and below. Colour and shape tell what "
      "joins the ranks. A hollow mark was used to fit its cluster, a filled one was not.",
      summary.rows, margin * 100);
  const Kinds kinds = kinds_by(summary, fabric);
  const Ranges ranges = ranges_of(summary);
  ScatterPanel panel;
  panel.x = time_axis("measured time", ranges.times_us);
  panel.y = time_axis("forecast time", ranges.times_us);
  panel.guides = {proportional(panel.x, 1, Guide::Kind::line),
                  proportional(panel.x, 1 + margin, Guide::Kind::dashes),
                  proportional(panel.x, 1 - margin, Guide::Kind::dashes)};
  panel.groups = groups_of(kinds);
  for (const CollectiveResult& result : summary.results)
    for (std::size_t row = 0; row < result.forecast.size(); ++row)
      group_of(panel.groups, kinds, result.fabric, result.of.fitted)
          .dots.push_back({result.of.measured.rows[row].time.us(), result.forecast[row].us(),
                           table_name(result.of.name)});
  ScatterChart chart;
  chart.panels.push_back(std::move(panel));
  chart.panel_px = 640;
  chart.marks = 0.8;
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

report::Figure collective_error_figure(const CollectiveSummary& summary) {
  report::Figure figure;
  figure.name = "collective_error";
  figure.title = "Collectives: error of the forecast over size";
  figure.caption = fmt::format("Marks as in the figure before. {}", reading);
  const Kinds kinds = kinds_by(summary, fabric);
  ScatterChart chart;
  chart.panels.push_back(error_panel(all_results(summary), ranges_of(summary), kinds, fabric,
                                     errors_by_role(summary).front().bands, true));
  chart.panel_px = 560;
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

report::Figure cluster_error_figure(const CollectiveSummary& summary) {
  report::Figure figure;
  figure.name = "collective_error_by_cluster";
  figure.title = "Collectives: error of the forecast over size, cluster by cluster";
  figure.caption = fmt::format(
      "The rows of each cluster on their own, each with its own range of errors; colour and shape "
      "tell the operation. {}",
      reading);
  std::vector<std::string> clusters = clusters_of(summary);
  if (clusters.size() > most_clusters) {
    figure.caption +=
        fmt::format(" The {} clusters with the most rows, of {}.", most_clusters, clusters.size());
    clusters.resize(most_clusters);
  }
  const Kinds kinds = kinds_by(summary, operation);
  const std::vector<double> sizes = ranges_of(summary).sizes;  // one axis for all panels
  ScatterChart chart;
  for (const std::string& cluster : clusters) {
    CollectiveSummary one;
    for (const CollectiveResult& result : summary.results)
      if (result.of.cluster == cluster) one.results.push_back(result);
    const std::vector<validate::BandError> bands = errors_by_role(one).front().bands;
    Ranges ranges = ranges_of(one);
    ranges.sizes = sizes;
    chart.panels.push_back(error_panel(all_results(one), ranges, kinds, operation, bands, false));
    chart.panels.back().title = fmt::format("{}, {} table{}", cluster, one.results.size(),
                                            one.results.size() == 1 ? "" : "s");
  }
  chart.columns = 3;
  chart.panel_px = 240;
  chart.left_px = 84;
  chart.marks = 0.7;
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

report::Figure own_model_figure(const CollectiveSummary& summary) {
  report::Figure figure;
  figure.name = "nccl_own_model";
  figure.title = "Median error against that of NCCL's own model";
  const OwnModelScore score = own_model_score(summary);
  if (score.tables == 0) {
    figure.left_out = "NCCL's own model covers none of these tables: not MPI, not all_to_all.";
    return figure;
  }
  figure.caption = fmt::format(
      "Each mark is one table. NCCL chooses its algorithms with a cost model whose constants are "
      "built in; below the diagonal, on {} of {} tables, the forecast has the smaller median "
      "error, and on the dashed line a tenth of it. That model is not fitted to anything here, "
      "while {} of the tables were used to fit their cluster (hollow marks): it is the yardstick "
      "that a calibrated forecast has to beat, not an equal.",
      score.better, score.tables, score.fitted);
  const Kinds kinds = kinds_by(summary, fabric);
  ScatterPanel panel;
  panel.groups = groups_of(kinds);
  std::vector<double> ours, theirs;
  for (const CollectiveResult& result : summary.results) {
    if (!result.nccl_median) continue;
    ours.push_back(100 * std::max(result.median_error, least_error));
    theirs.push_back(100 * std::max(*result.nccl_median, least_error));
    group_of(panel.groups, kinds, result.fabric, result.of.fitted)
        .dots.push_back({theirs.back(), ours.back(), table_name(result.of.name)});
  }
  std::vector<double> both = ours;
  both.insert(both.end(), theirs.begin(), theirs.end());
  panel.x = round_axis("median error of NCCL's own model", both, "%", 9);
  panel.y = round_axis("median error of the forecast", both, "%", 9);
  panel.guides = {proportional(panel.x, 1, Guide::Kind::line),
                  proportional(panel.x, 0.1, Guide::Kind::dashes)};
  ScatterChart chart;
  chart.panels.push_back(std::move(panel));
  chart.panel_px = 560;
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

}  // namespace lambcast
