#include "experiments/report/step_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "experiments/report/gnuplot.h"
#include "experiments/report/palette.h"

namespace lambcast::report {
namespace {

constexpr int bars_panel_px = 335;
constexpr std::size_t first_part_column = 6;
constexpr std::size_t parts = part_looks.size() + 1;
// Columns after the parts: interval of the step time, and the label of the bar.
constexpr std::size_t low_column = first_part_column + parts, high_column = low_column + 1,
                      label_column = high_column + 1;

const PartLook& look_of(std::size_t part) {
  return part < part_looks.size() ? part_looks[part] : whole_step_look;
}

// Returns whether any bar has a visible share of this part.
bool is_drawn(const std::vector<BarPanel>& panels, std::size_t part) {
  constexpr double visible = 0.002;
  return std::ranges::any_of(panels, [&](const BarPanel& panel) {
    return std::ranges::any_of(panel.bars, [&](const Bar& bar) {
      return bar.parts_us[part] > visible * bar.step_time_us;
    });
  });
}

std::string step_label(const Point& point, StepKind kind) {
  return kind == StepKind::uniform ? display_name(point.optimizer.text())
                                   : std::string(adjective_of(kind));
}

Bar bar_of(const Point& point, const StepFigures& step) {
  Bar bar{step_label(point, step.kind),
          point.gpus,
          point.global_batch,
          step.step_time_us,
          {},
          step.low_us,
          step.high_us};
  std::copy(step.parts_us.begin(), step.parts_us.end(), bar.parts_us.begin());
  const double sum = std::accumulate(step.parts_us.begin(), step.parts_us.end(), 0.0);
  bar.rest_us() = std::max(0.0, step.step_time_us - sum);
  return bar;
}

// Returns the mean step of the plain run that a compressed row is compared with. Its parts are
// unknown.
Bar baseline_bar(const Point& point) {
  const double step_time_us = point.run_time_s * point.speedup / point.steps * 1e6;
  Bar bar{display_name(point.baseline.text()), point.gpus, point.global_batch, step_time_us};
  bar.parts_us.back() = step_time_us;
  return bar;
}

// Returns the compressed row of this GPU count if its plain run has no row, else null.
const Point* without_plain_row(const Points& points, double gpus) {
  const Point* found = nullptr;
  for (const Point* p : points) {
    if (p->gpus != gpus) continue;
    if (!p->compressed()) return nullptr;
    if (found == nullptr && std::isfinite(p->run_time_s * p->speedup / p->steps)) found = p;
  }
  return found;
}

// Returns the positions of bars: one apart, with a distance of two between groups of one GPU count.
std::vector<double> places(const std::vector<Bar>& bars) {
  std::vector<double> xs;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const double gap = i > 0 && bars[i].gpus != bars[i - 1].gpus ? 1.7 : 1;
    xs.push_back(i == 0 ? 0 : xs.back() + gap);
  }
  return xs;
}

double height_ms(const Bar& bar) {
  const double sum = std::accumulate(bar.parts_us.begin(), bar.parts_us.end(), 0.0);
  return std::fmax(std::max(sum, bar.step_time_us), bar.high_us) * bar.gpus / bar.global_batch /
         1e3;
}

// Formats a time above a bar with three digits: "1.25 s", "83.1 ms".
std::string short_time(double us) {
  const auto [value, unit] = us >= 0.9995e6   ? std::pair(us / 1e6, "s")
                             : us >= 0.9995e3 ? std::pair(us / 1e3, "ms")
                                              : std::pair(us, "µs");
  return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, unit);
}

std::string group_labels(const BarPanel& panel, const std::vector<double>& xs) {
  std::string text;
  int tag = 10;
  for (std::size_t i = 0; i < xs.size();) {
    std::size_t end = i;
    while (end < xs.size() && panel.bars[end].gpus == panel.bars[i].gpus) ++end;
    text += fmt::format("  set label {} '{} GPUs' at first {:.3f},graph -0.38 center font ',13'\n",
                        tag++, panel.bars[i].gpus, (xs[i] + xs[end - 1]) / 2);
    i = end;
  }
  return text;
}

std::string panel_script(const BarPanel& panel, std::size_t index, const std::string& name) {
  const std::vector<double> xs = places(panel.bars);
  double top = 0;
  for (const Bar& bar : panel.bars) top = std::max(top, height_ms(bar));
  const std::size_t last = first_part_column + parts - 1;
  std::string text = fmt::format(
      "  set title {} font ',14' offset 0,-0.5\n  set xrange [-0.8:{:.3f}]\n"
      "  set yrange [0:{:.6g}]\n{}  plot ",
      script_text(panel.title), xs.back() + 0.8, top * 1.32, group_labels(panel, xs));
  // Draws from the whole stack downwards; each bar covers the lower part of the previous one.
  for (std::size_t column = last; column >= first_part_column; --column) {
    text += fmt::format(
        "'{}.dat' index {} using 1:((sum [k={}:{}] column(k)) * $3 / $4 / 1e3){} with boxes "
        "lc rgb '{}', \\\n    ",
        name, index, first_part_column, column, column == last ? ":xtic(2)" : "",
        look_of(column - first_part_column).colour);
  }
  text += fmt::format(
      "'{0}.dat' index {1} using 1:($5 * $3 / $4 / 1e3):(0.39) with xerrorbars pt 0 lw 1.5 "
      "lc rgb '#000000', \\\n    "
      "'{0}.dat' index {1} using 1:(${2} * $3 / $4 / 1e3):(0):((${3} - ${2}) * $3 / $4 / 1e3)"
      " with vectors nohead lw 1 lc rgb '#000000', \\\n    "
      "'{0}.dat' index {1} using 1:(${4} * $3 / $4 / 1e3 + {5:.6g})"
      ":(sprintf('%s', stringcolumn({6}))) with labels rotate left font ',12'\n",
      name, index, low_column, high_column, label_column + 1, top * 0.025, label_column);
  return text + "  unset label\n";
}

}  // namespace

BarPanel bar_panel(const Points& points, std::string title) {
  BarPanel panel{std::move(title), {}};
  for (const double gpus : evenly_chosen(values(points, &Point::gpus), most_groups)) {
    if (const Point* p = without_plain_row(points, gpus)) panel.bars.push_back(baseline_bar(*p));
    for (const bool compressed : {false, true}) {
      for (const Point* p : points) {
        if (p->gpus != gpus || p->compressed() != compressed) continue;
        for (const StepFigures& step : p->kinds) panel.bars.push_back(bar_of(*p, step));
      }
    }
  }
  return panel;
}

std::size_t overlapping(const std::vector<BarPanel>& panels) {
  std::size_t count = 0;
  for (const BarPanel& panel : panels) {
    for (const Bar& bar : panel.bars) {
      const double sum = std::accumulate(bar.parts_us.begin(), bar.parts_us.end(), 0.0);
      if (sum > bar.step_time_us * 1.001) ++count;
    }
  }
  return count;
}

std::string bar_data(const std::vector<BarPanel>& panels, const std::vector<std::string>& notes) {
  std::string text;
  for (const std::string& note : notes) text += comment(note);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    if (i > 0) text += "\n\n";
    text += comment(panels[i].title);
    text +=
        comment(fmt::format("place stage gpus global_batch step_time_us {}_us rest_us "
                            "unsplit_us low_us high_us label top_us",
                            fmt::join(step_parts, "_us ")));
    const std::vector<double> xs = places(panels[i].bars);
    for (std::size_t b = 0; b < xs.size(); ++b) {
      const Bar& bar = panels[i].bars[b];
      text += fmt::format("{:.3g} {} {} {} {}", xs[b], data_text(bar.label), bar.gpus,
                          data_number(bar.global_batch), data_number(bar.step_time_us));
      for (const double part : bar.parts_us) text += ' ' + data_number(part);
      const double sum = std::accumulate(bar.parts_us.begin(), bar.parts_us.end(), 0.0);
      text += fmt::format(" {} {} {} {}\n", data_number(bar.low_us), data_number(bar.high_us),
                          data_text(short_time(bar.step_time_us)),
                          data_number(std::fmax(std::max(sum, bar.step_time_us), bar.high_us)));
    }
  }
  return text;
}

std::string bar_script(const std::vector<BarPanel>& panels, const std::string& name,
                       const std::string& title) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < parts; ++part)
    if (is_drawn(panels, part))
      entries.push_back(
          {std::string(look_of(part).label), LegendEntry::Mark::box, look_of(part).colour});
  const bool has_ends = std::ranges::any_of(panels, [](const BarPanel& panel) {
    return std::ranges::any_of(panel.bars, [](const Bar& bar) { return bar.low_us > 0; });
  });
  if (has_ends) entries.push_back({"thin line: interval", LegendEntry::Mark::line, "#000000"});
  const int height = 40 + legend_height(entries, figure_width_px) +
                     bars_panel_px * static_cast<int>(panels.size());
  std::string body =
      "  set boxwidth 0.78; set style fill solid 1 noborder\n"
      "  set errorbars 0\n  unset grid; set grid ytics lc rgb '#d8d8d8' lw 1 dt 1\n"
      "  set xtics rotate by 40 right font ',12' scale 0\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const double top = 40 + bars_panel_px * static_cast<double>(i);
    body += margins({0.095, 0.985, 1 - (top + 235) / height, 1 - (top + 30) / height});
    if (i + 1 == panels.size()) body += legend(entries, figure_width_px, height);
    body += y_label("GPU time per sample (ms)", 14.0 / figure_width_px);
    body += panel_script(panels[i], i, name);
  }
  return script(name, title, figure_width_px, height, body);
}

}  // namespace lambcast::report
