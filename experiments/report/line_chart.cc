#include "experiments/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/gnuplot.h"

namespace lambcast::report {
namespace {

constexpr int line_panel_px = 310;

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Range range_of_y(const LineChart& chart) {
  Range y;
  y.include(chart.level);
  for (const Panel& panel : chart.panels)
    for (const auto* of : {&panel.rows, &panel.low, &panel.high})
      for (const auto& [x, values] : *of)
        for (const double value : values) y.include(value);
  return y;
}

bool has_ends(const LineChart& chart) {
  return std::ranges::any_of(chart.panels, [](const Panel& panel) {
    return std::ranges::any_of(panel.low, [](const auto& row) {
      return std::ranges::any_of(row.second, [](double end) { return std::isfinite(end); });
    });
  });
}

// Returns the x values of all panels, which share their axes so that they can be compared.
std::vector<double> all_x(const LineChart& chart) {
  std::vector<double> xs;
  for (const Panel& panel : chart.panels) {
    for (const auto& [x, values] : panel.rows) xs.push_back(x);
  }
  std::sort(xs.begin(), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  return xs;
}

// Returns how many tick labels fit. A label takes about 9 pixels per digit and a gap; a panel is as
// wide as the figure or half of it.
int ticks_that_fit(const std::vector<double>& xs, std::size_t panels) {
  const double label_px = 10 + 9 * static_cast<double>(data_number(xs.back()).size());
  return static_cast<int>((panels == 1 ? 680 : 300) / label_px);
}

// Returns a smaller letter size for long names of clusters; 42 letters fit a panel at the usual 14
// pixels.
int title_size(const std::string& title) {
  return std::clamp(14 * 42 / static_cast<int>(title.size() + 1), 8, 14);
}

std::string axes(const LineChart& chart) {
  std::string text;
  const std::vector<double> xs = all_x(chart);
  if (chart.log_x) {
    text += fmt::format("  set logscale x 2\n  set xrange [{:.6g}:{:.6g}]\n  set xtics {}\n",
                        xs.front() / 1.2, xs.back() * 1.2,
                        log_ticks(xs, ticks_that_fit(xs, chart.panels.size())));
  } else {
    const double pad = 0.04 * (xs.back() - xs.front());
    text += fmt::format("  set xrange [{:.6g}:{:.6g}]\n", xs.front() - pad, xs.back() + pad);
  }
  const Range y = range_of_y(chart);
  if (chart.log_y) {
    const double low = y.low / 1.3, high = y.high * 1.3;
    text += fmt::format("  set logscale y 10\n  set yrange [{:.6g}:{:.6g}]\n  set ytics {}\n", low,
                        high, log_ticks(round_places(low, high), 9));
  } else {
    text += fmt::format("  set yrange [0:{:.6g}]\n", y.high * 1.08);
  }
  if (std::isfinite(chart.level)) {
    text += fmt::format(
        "  set arrow 1 from graph 0,first {0} to graph 1,first {0} nohead dt 2 lw 1.5 "
        "lc rgb '#606060' back\n",
        chart.level);
  }
  if (std::isfinite(chart.mark_x) && chart.mark_x >= xs.front() && chart.mark_x <= xs.back()) {
    text += fmt::format(
        "  set arrow 2 from first {0:.6g},graph 0 to first {0:.6g},graph 1 nohead dt 3 lw 1.5 "
        "lc rgb '#606060' back\n"
        "  set label 2 {1} at first {0:.6g},graph 0.09 offset 0.6,0 left font ',12' "
        "textcolor rgb '#404040'\n",
        chart.mark_x, script_text(chart.mark_label));
  }
  return text;
}

std::string with_look(const Series& series) {
  if (series.reference) return "with lines dt (8,6) lw 2 lc rgb '#606060'";
  return fmt::format("with linespoints lw 2 lc rgb '{}' pt {} ps {}*mark", series.look.colour,
                     series.look.point, series.look.size);
}

LegendEntry legend_entry(const Series& series) {
  using Mark = LegendEntry::Mark;
  if (series.reference) return {series.name, Mark::dashes, "#606060"};
  return {series.name, Mark::line, series.look.colour, series.look.point, series.look.size};
}

std::string plot(const LineChart& chart, std::size_t panel) {
  std::vector<std::string> lines;
  const std::size_t count = chart.series.size();
  for (std::size_t s = 0; has_ends(chart) && s < count; ++s)
    if (!chart.series[s].reference)
      lines.push_back(fmt::format(
          "'{}.dat' index {} using 1:{}:{} with filledcurves fs transparent solid 0.16 noborder "
          "lc rgb '{}'",
          chart.name, panel, count + 2 * s + 2, count + 2 * s + 3, chart.series[s].look.colour));
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    lines.push_back(fmt::format("'{}.dat' index {} using 1:{} {}", chart.name, panel, s + 2,
                                with_look(chart.series[s])));
  }
  return fmt::format("  plot {}\n", fmt::join(lines, ", \\\n    "));
}

}  // namespace

void Panel::set(double x, std::size_t series, std::size_t count, double value, double low_end,
                double high_end) {
  const auto put = [&](std::map<double, std::vector<double>>& of, double number) {
    of.try_emplace(x, std::vector<double>(count, absent)).first->second[series] = number;
  };
  put(rows, value);
  put(low, low_end);
  put(high, high_end);
}

std::string chart_data(const LineChart& chart) {
  std::string text;
  for (const std::string& note : chart.notes) text += comment(note);
  for (std::size_t i = 0; i < chart.panels.size(); ++i) {
    if (i > 0) text += "\n\n";
    text += comment(chart.panels[i].title);
    std::string heading = chart.x_column;
    for (const Series& series : chart.series) heading += ' ' + data_text(series.name);
    if (has_ends(chart))
      for (const Series& series : chart.series)
        heading += ' ' + data_text(series.name + ", low") + ' ' + data_text(series.name + ", high");
    text += comment(heading);
    for (const auto& [x, values] : chart.panels[i].rows) {
      text += data_number(x);
      for (const double value : values) text += ' ' + data_number(value);
      for (std::size_t s = 0; has_ends(chart) && s < values.size(); ++s)
        text += ' ' + data_number(chart.panels[i].low.at(x)[s]) + ' ' +
                data_number(chart.panels[i].high.at(x)[s]);
      text += '\n';
    }
  }
  return text;
}

std::string chart_script(const LineChart& chart) {
  const std::size_t count = chart.panels.size();
  const std::size_t columns = count == 1 ? 1 : 2;
  const std::size_t rows = (count + columns - 1) / columns;
  std::vector<LegendEntry> entries;
  for (const Series& series : chart.series) entries.push_back(legend_entry(series));
  if (has_ends(chart)) entries.push_back({"band: interval", LegendEntry::Mark::box, "#dcdcdc"});
  const int height =
      40 + legend_height(entries, figure_width_px) + line_panel_px * static_cast<int>(rows);
  const auto share = [height](double px) { return px / height; };
  std::string body = axes(chart);
  for (std::size_t i = 0; i < count; ++i) {
    const double left = static_cast<double>(i % columns) / static_cast<double>(columns);
    const double top = 1 - share(40 + line_panel_px * static_cast<double>(i / columns));
    body += margins({left + 94.0 / figure_width_px,
                     left + 1.0 / static_cast<double>(columns) - 14.0 / figure_width_px,
                     top - share(line_panel_px - 56), top - share(30)});
    body += fmt::format("  set title {} font ',{}' offset 0,-0.5\n",
                        script_text(chart.panels[i].title), title_size(chart.panels[i].title));
    body += fmt::format("  set xlabel {} offset 0,up\n", script_text(chart.x_label));
    if (i % columns == 0) body += y_label(chart.y_label, 12.0 / figure_width_px);
    if (i + 1 == count) body += legend(entries, figure_width_px, height);
    body += plot(chart, i);
    body += i == 0 ? "  unset label 1; unset label 5\n" : "";
    if (i > 0 && i % columns == 0) body += "  unset label 5\n";
  }
  return script(chart.name, chart.title, figure_width_px, height, body);
}

}  // namespace lambcast::report
