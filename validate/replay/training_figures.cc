#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/sort_stably.h"
#include "validate/replay/axes.h"
#include "validate/replay/figures.h"

namespace lambcast {
namespace {

// Errors at which reference lines are drawn, on both sides.
constexpr double figure_margin = 0.10;

Kinds publications(const ReplaySummary& summary) {
  std::vector<std::string> names;
  for (const ReplayResult& result : summary.results) names.push_back(table_name(result.of.table));
  return kinds_of(names);
}

ScatterPanel quantity_panel(const ReplaySummary& summary, const Kinds& kinds,
                            const std::string& quantity) {
  const std::string name = quantity == "step_time_ms" ? "step time (ms)" : "samples per second";
  ScatterPanel panel;
  panel.title = name;
  panel.groups = groups_of(kinds);
  std::vector<double> values;
  for (const ReplayResult& result : summary.results) {
    if (result.of.quantity != quantity) continue;
    values.insert(values.end(), {result.of.measured, result.forecast});
    group_of(panel.groups, kinds, table_name(result.of.table), result.of.fitted)
        .dots.push_back({result.of.measured, result.forecast, result.of.id});
  }
  if (values.empty()) return panel;
  panel.x = round_axis("measured " + name, values, "", 7);
  panel.y = round_axis("forecast " + name, values, "", 7);
  panel.guides = {proportional(panel.x, 1, Guide::Kind::line),
                  proportional(panel.x, 1 + figure_margin, Guide::Kind::dashes),
                  proportional(panel.x, 1 - figure_margin, Guide::Kind::dashes)};
  return panel;
}

// Returns the cases of the figure, in their order in the files.
std::vector<const ReplayResult*> shown_cases(const ReplaySummary& summary) {
  std::vector<const ReplayResult*> cases;
  for (const ReplayResult& result : summary.results) cases.push_back(&result);
  if (cases.size() <= most_cases) return cases;
  sort_stably(cases,
              [](const auto* a, const auto* b) { return std::abs(a->error) > std::abs(b->error); });
  cases.resize(most_cases);
  // The pointers point into one vector, so their order is that of the cases.
  std::sort(cases.begin(), cases.end());
  return cases;
}

// Returns an axis in percent with space for the widest limit and the worst error.
ScatterAxis error_axis(const std::vector<const ReplayResult*>& cases) {
  double widest = figure_margin;
  for (const ReplayResult* result : cases)
    widest = std::max({widest, result->of.max_error, std::abs(result->error)});
  ScatterAxis axis{"forecast / measured - 1", false, -widest * 1.08, widest * 1.08, {}};
  const double step = report::round_places(widest / 100, widest / 2).back();
  for (double place = 0; place <= axis.high; place += step) {
    axis.ticks.push_back({place, place == 0 ? "0" : fmt::format("{:+.4g}%", place * 100)});
    if (place > 0) axis.ticks.push_back({-place, fmt::format("{:+.4g}%", -place * 100)});
  }
  return axis;
}

}  // namespace

report::Figure training_figure(const ReplaySummary& summary) {
  report::Figure figure;
  figure.name = "training";
  figure.title = "Training: forecast against measurement";
  figure.caption = fmt::format(
      "Each mark is one measured figure; on the diagonal the forecast equals it, the dashed lines "
      "are {:.0f}% above and below. Colour and shape tell the publication. A hollow mark set a "
      "parameter of its cluster (fitted), a filled one did not (unseen).",
      figure_margin * 100);
  const Kinds kinds = publications(summary);
  ScatterChart chart;
  for (const char* quantity : {"step_time_ms", "samples_per_s"}) {
    ScatterPanel panel = quantity_panel(summary, kinds, quantity);
    if (!panel.guides.empty()) chart.panels.push_back(std::move(panel));
  }
  chart.columns = 2;
  chart.panel_px = chart.panels.size() == 1 ? 640 : 380;
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

report::Figure training_error_figure(const ReplaySummary& summary) {
  report::Figure figure;
  figure.name = "training_error";
  figure.title = "Training: error of each forecast, and its limit";
  const std::vector<const ReplayResult*> cases = shown_cases(summary);
  figure.caption =
      "The shaded bar is the limit of that case; a mark outside it fails. Marks as in the figure "
      "before; an error above zero is a forecast above the measurement.";
  if (cases.size() < summary.results.size())
    figure.caption +=
        fmt::format(" The {} largest errors of {} cases.", cases.size(), summary.results.size());
  const Kinds kinds = publications(summary);
  const auto count = static_cast<double>(cases.size());
  ScatterPanel panel;
  panel.groups = groups_of(kinds);
  panel.x = error_axis(cases);
  panel.y = {"", false, 0.3, count + 0.7, {}};
  std::size_t longest = 0;
  double y = count;
  for (const ReplayResult* result : cases) {
    panel.y.ticks.push_back({y, result->of.id});
    longest = std::max(longest, result->of.id.size());
    panel.guides.push_back(
        {-result->of.max_error, y - 0.36, result->of.max_error, y + 0.36, Guide::Kind::area});
    group_of(panel.groups, kinds, table_name(result->of.table), result->of.fitted)
        .dots.push_back({result->error, y, result->of.id});
    y -= 1;
  }
  panel.guides.push_back({0, panel.y.low, 0, panel.y.high, Guide::Kind::line});
  ScatterChart chart;
  chart.panels.push_back(std::move(panel));
  chart.panel_px = 70 + 19 * static_cast<int>(cases.size());
  chart.left_px = 30 + std::min(350, 8 * static_cast<int>(longest));
  chart.legend = legend_of(chart.panels, kinds);
  set_chart(figure, std::move(chart));
  return figure;
}

}  // namespace lambcast
