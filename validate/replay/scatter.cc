#include "validate/replay/scatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/column.h"

namespace lambcast {
namespace {

using report::data_number;
using report::script_text;

constexpr int width = 820;

// Letter size: smaller for a grid of panels than for one or two.
int letters(const ScatterChart& chart) { return chart.columns > 2 ? 11 : 13; }

// Escapes a tick mark, whose text is a format string in gnuplot.
std::string tick_text(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '%' ? std::string("%%") : std::string(1, c);
  return script_text(out);
}

std::string ticks(const ScatterAxis& axis) {
  std::vector<std::string> marks;
  for (const AxisTick& tick : axis.ticks)
    if (tick.place >= axis.low * 0.999999 && tick.place <= axis.high * 1.000001)
      marks.push_back(fmt::format("{} {:.8g}", tick_text(tick.text), tick.place));
  return fmt::format("({})", fmt::join(marks, ", "));
}

std::string axis_commands(char name, const ScatterAxis& axis, int size) {
  return fmt::format(
      "  {1} logscale {0}\n  set {0}range [{2:.8g}:{3:.8g}]\n"
      "  set {0}tics {4} font ',{5}'\n",
      name, axis.logarithmic ? "set" : "unset", axis.low, axis.high, ticks(axis), size);
}

std::string_view style_of(Guide::Kind kind) {
  switch (kind) {
    case Guide::Kind::line:
      return "with lines lw 1.5 lc rgb '#404040'";
    case Guide::Kind::dashes:
      return "with lines lw 1.5 dt (8,6) lc rgb '#707070'";
    case Guide::Kind::area:
      return "with filledcurves closed fillstyle solid 1 noborder lc rgb '#dfe6ee'";
  }
  return {};
}

std::string corners(const Guide& guide) {
  const std::string x1 = data_number(guide.x1), y1 = data_number(guide.y1);
  const std::string x2 = data_number(guide.x2), y2 = data_number(guide.y2);
  if (guide.kind != Guide::Kind::area) return fmt::format("{} {}\n{} {}\n", x1, y1, x2, y2);
  return fmt::format("{0} {1}\n{2} {1}\n{2} {3}\n{0} {3}\n", x1, y1, x2, y2);
}

// Returns one `plot` command; `block` counts the blocks of the data file.
std::string plot(const ScatterChart& chart, const ScatterPanel& panel, int& block) {
  std::vector<std::string> parts;
  for (const Guide& guide : panel.guides)
    parts.push_back(
        fmt::format("'{}.dat' index {} using 1:2 {}", chart.name, block++, style_of(guide.kind)));
  for (const DotGroup& group : panel.groups)
    if (!group.dots.empty())
      parts.push_back(fmt::format(
          "'{}.dat' index {} using 1:2 with points pt {} ps {}*mark lw 1.4 "
          "lc rgb '{}'",
          chart.name, block++, group.look.point, group.look.size * chart.marks, group.look.colour));
  return fmt::format("  plot {}\n", fmt::join(parts, ", \\\n    "));
}

std::string labels(const ScatterChart& chart, const ScatterPanel& panel) {
  std::string text = fmt::format("  set title {} font ',{}' offset 0,-0.5\n",
                                 script_text(panel.title), letters(chart) + 1);
  text += fmt::format("  set xlabel {} font ',{}' offset 0,up\n", script_text(panel.x.label),
                      letters(chart) + 1);
  for (std::size_t i = 0; i < panel.notes.size(); ++i) {
    const ScatterNote& note = panel.notes[i];
    text += fmt::format("  set label {} {} at first {:.8g},first {:.8g} center font ',{}' front\n",
                        10 + i, script_text(note.text), note.x, note.y, letters(chart));
  }
  return text;
}

// ---- for the page ----

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.8g}", value) : "null";
}

std::string axis_json(const ScatterAxis& axis) {
  std::vector<std::string> names;
  for (const AxisTick& tick : axis.ticks)
    names.push_back(fmt::format(R"({{"place":{},"text":{}}})", json_number(tick.place),
                                report::json_text(tick.text)));
  return fmt::format(
      R"({{"label":{},"log":{},"low":{},"high":{},"unit":{},"ratio":{},"names":[{}]}})",
      report::json_text(axis.label), axis.logarithmic, json_number(axis.low),
      json_number(axis.high), report::json_text(axis.unit), axis.ratio, fmt::join(names, ","));
}

// gnuplot's point types come in pairs, hollow and filled: circle, square, triangle, diamond.
std::string group_json(const DotGroup& group) {
  const int shape = group.look.point / 2;
  const int place = shape == 3 ? 0 : shape == 2 ? 1 : shape == 6 ? 3 : shape == 7 ? 0 : 2;
  std::vector<std::string> points;
  for (const Dot& dot : group.dots)
    points.push_back(fmt::format(R"({{"x":{},"y":{},"hollow":{},"text":{}}})", json_number(dot.x),
                                 json_number(dot.y), group.look.point % 2 == 0,
                                 report::json_text(dot.name)));
  return fmt::format(R"({{"name":{},"colour":{},"shape":{},"points":[{}]}})",
                     report::json_text(group.name), report::json_text(group.look.colour), place,
                     fmt::join(points, ","));
}

std::string guide_json(const Guide& guide) {
  const std::string_view kind = guide.kind == Guide::Kind::line     ? "line"
                                : guide.kind == Guide::Kind::dashes ? "dashes"
                                                                    : "area";
  return fmt::format(R"({{"x1":{},"y1":{},"x2":{},"y2":{},"kind":"{}"}})", json_number(guide.x1),
                     json_number(guide.y1), json_number(guide.x2), json_number(guide.y2), kind);
}

std::string panel_json(const ScatterChart& chart, const ScatterPanel& panel) {
  std::vector<std::string> series, guides;
  for (const DotGroup& group : panel.groups)
    if (!group.dots.empty()) series.push_back(group_json(group));
  for (const Guide& guide : panel.guides) guides.push_back(guide_json(guide));
  return fmt::format(
      R"({{"title":{},"cloud":true,"room":0,"radius":{:.3g},"height":{},"x":{},"y":{},)"
      R"("series":[{}],"guides":[{}]}})",
      report::json_text(panel.title), 4 * chart.marks, chart.panel_px, axis_json(panel.x),
      axis_json(panel.y), fmt::join(series, ","), fmt::join(guides, ","));
}

}  // namespace

std::string scatter_data(const ScatterChart& chart) {
  std::vector<std::string> blocks;
  for (const ScatterPanel& panel : chart.panels) {
    const std::string where = fmt::format("{}; {}; {}", panel.title, panel.x.label, panel.y.label);
    for (const Guide& guide : panel.guides)
      blocks.push_back(report::comment("to compare with; " + where) + corners(guide));
    for (const DotGroup& group : panel.groups) {
      if (group.dots.empty()) continue;
      std::string block = report::comment(group.name + "; " + where);
      for (const Dot& dot : group.dots)
        block += fmt::format("{} {} {}\n", data_number(dot.x), data_number(dot.y),
                             report::data_text(dot.name));
      blocks.push_back(std::move(block));
    }
  }
  std::string text;
  for (const std::string& note : chart.notes) text += report::comment(note);
  return text + fmt::format("{}", fmt::join(blocks, "\n\n"));
}

std::string scatter_script(const ScatterChart& chart) {
  const int count = static_cast<int>(chart.panels.size());
  const int columns = std::min(chart.columns, count);
  const int rows = (count + columns - 1) / columns;
  const int height = 40 + report::legend_height(chart.legend, width) + chart.panel_px * rows;
  const auto share = [height](double px) { return px / height; };
  std::string body = "  set clip two\n";  // lines that begin and end outside the panel
  int block = 0;
  for (int i = 0; i < count; ++i) {
    const ScatterPanel& panel = chart.panels[static_cast<std::size_t>(i)];
    const double cell = 1.0 / columns;
    const double left = cell * (i % columns);
    const double top = 1 - share(40 + chart.panel_px * (i / columns));
    const double title = panel.title.empty() ? 6 : 26;
    body += report::margins({left + static_cast<double>(chart.left_px) / width,
                             left + cell - 20.0 / width, top - share(chart.panel_px - 56),
                             top - share(title)});
    body +=
        axis_commands('x', panel.x, letters(chart)) + axis_commands('y', panel.y, letters(chart));
    body += labels(chart, panel);
    if (columns <= 2 || i % columns == 0)
      body += report::y_label(panel.y.label, left + 14.0 / width);
    if (i + 1 == count) body += report::legend(chart.legend, width, height);
    body += plot(chart, panel, block) + "  unset label\n";
  }
  return report::script(chart.name, chart.title, width, height, body);
}

std::string scatter_page_chart(const ScatterChart& chart) {
  std::vector<std::string> panels;
  for (const ScatterPanel& panel : chart.panels) panels.push_back(panel_json(chart, panel));
  return fmt::format(R"({{"columns":{},"panels":[{}]}})", chart.columns, fmt::join(panels, ",\n"));
}

}  // namespace lambcast
