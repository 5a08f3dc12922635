#include "experiments/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/gnuplot.h"

namespace lambcast::report {
namespace {

constexpr int width = 820;

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
  for (const Panel& panel : chart.panels) {
    for (const auto& [x, values] : panel.rows) {
      for (const double value : values) y.include(value);
    }
  }
  return y;
}

// All x of all panels: panels share their axes so that they can be compared.
std::vector<double> all_x(const LineChart& chart) {
  std::vector<double> xs;
  for (const Panel& panel : chart.panels) {
    for (const auto& [x, values] : panel.rows) xs.push_back(x);
  }
  std::sort(xs.begin(), xs.end());
  xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
  return xs;
}

// 1, 2, 5, 10, ... from `low` to `high`.
std::vector<double> round_places(double low, double high) {
  std::vector<double> places;
  for (double decade = std::pow(10, std::floor(std::log10(low))); decade <= high; decade *= 10) {
    for (const double step : {1.0, 2.0, 5.0}) {
      if (step * decade >= low && step * decade <= high) places.push_back(step * decade);
    }
  }
  return places;
}

std::string axes(const LineChart& chart) {
  std::string text;
  const std::vector<double> xs = all_x(chart);
  if (chart.log_x) {
    text += fmt::format("  set logscale x 2\n  set xrange [{:.6g}:{:.6g}]\n  set xtics {}\n",
                        xs.front() / 1.2, xs.back() * 1.2, log_ticks(xs, 8));
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
        "  set label 2 {1} at first {0:.6g},graph 0.05 offset 0.6,0 left font ',12' "
        "textcolor rgb '#404040'\n",
        chart.mark_x, script_text(chart.mark_label));
  }
  return text;
}

std::string with_look(const Series& series) {
  if (series.reference) return "with lines dt 2 lw 2 lc rgb '#606060'";
  return fmt::format("with linespoints lw 2 lc rgb '{}' pt {} ps 1", series.look.colour,
                     series.look.point);
}

std::string plot(const LineChart& chart, std::size_t panel) {
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < chart.series.size(); ++s) {
    lines.push_back(fmt::format("'{}.dat' index {} using 1:{} {}", chart.name, panel, s + 2,
                                with_look(chart.series[s])));
  }
  return fmt::format("  plot {}\n", fmt::join(lines, ", \\\n    "));
}

}  // namespace

std::string chart_data(const LineChart& chart) {
  std::string text;
  for (const std::string& note : chart.notes) text += comment(note);
  for (std::size_t i = 0; i < chart.panels.size(); ++i) {
    if (i > 0) text += "\n\n";
    text += comment(chart.panels[i].title);
    std::string heading = chart.x_column;
    for (const Series& series : chart.series) heading += ' ' + data_text(series.name);
    text += comment(heading);
    for (const auto& [x, values] : chart.panels[i].rows) {
      text += data_number(x);
      for (const double value : values) text += ' ' + data_number(value);
      text += '\n';
    }
  }
  return text;
}

std::string chart_script(const LineChart& chart) {
  const std::size_t count = chart.panels.size();
  const std::size_t columns = count == 1 ? 1 : 2;
  const std::size_t rows = (count + columns - 1) / columns;
  const int legend_px = 34 * static_cast<int>((chart.series.size() + 4) / 5);
  const int height = 44 + legend_px + 300 * static_cast<int>(rows);
  const auto share = [height](double px) { return px / height; };
  std::string body = axes(chart);
  for (std::size_t i = 0; i < count; ++i) {
    const double left = (i % columns) / static_cast<double>(columns);
    const double top = 1 - share(40 + 300.0 * static_cast<double>(i / columns));
    body += margins({left + 78.0 / width, left + 1.0 / static_cast<double>(columns) - 14.0 / width,
                     top - share(240), top - share(30)});
    body += fmt::format("  set title {} font ',14' offset 0,-0.5\n", script_text(chart.panels[i].title));
    body += fmt::format("  set xlabel {}\n  set ylabel {}\n", script_text(chart.x_label),
                        script_text(i % columns == 0 ? chart.y_label : ""));
    body += plot(chart, i);
    body += "  unset label 1\n";
  }
  std::vector<std::string> entries;
  for (const Series& series : chart.series) {
    entries.push_back(fmt::format("NaN {} title {}", with_look(series), script_text(series.name)));
  }
  body += "  unset label 2\n" + legend({0.02, 0.98, share(4), share(legend_px)}, 5, entries);
  return script(chart.name, chart.title, width, height, body);
}

}  // namespace lambcast::report
