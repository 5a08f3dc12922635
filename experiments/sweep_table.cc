#include "experiments/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "experiments/cell.h"
#include "experiments/forecast_output.h"
#include "experiments/report/verdict.h"
#include "experiments/result_row.h"
#include "sim/base/csv.h"

namespace lambcast {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

struct Line {
  std::vector<std::string> varied;
  double time_s = absent, samples_per_s = absent, speedup = absent, speedup_low = absent,
         speedup_high = absent, cost = absent, memory = absent, freeze_step = absent,
         steps = absent;
  std::string status;
  bool ok() const { return status == "ok"; }
  bool compresses() const { return !std::isnan(speedup); }
  // Whether a run that compresses would be run like this: it warms up, and not for most of itself.
  bool judged() const {
    return compresses() && !(freeze_step <= 1) &&
           !((freeze_step - 1) / steps > report::longest_warmup_share);
  }
  std::string name() const { return fmt::format("{}", fmt::join(varied, ", ")); }
};

double number_of(const std::string& text) {
  double number = absent;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::vector<Line> lines_of(const SweepPoints& points, const std::vector<Axis>& axes,
                           const std::vector<std::string>& rows) {
  std::string text = csv::row(result_columns()) + "\n";
  for (const std::string& row : rows) text += row + "\n";
  const csv::Table table = csv::parse(text, "the sweep");
  std::vector<Line> lines;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto number = [&](const char* column) { return number_of(table.text(i, column)); };
    Line line;
    const WhatIf point = points[i];
    for (const auto& [key, values] : axes) {
      const auto said = point.find(key);
      line.varied.push_back(said == point.end() ? "-" : said->second);
    }
    line.time_s = number("run_time_s");
    line.samples_per_s = number("run_samples_per_s");
    // Of plain optimizers there is nothing to compare.
    if (!table.text(i, "speedup_low").empty()) line.speedup = number("speedup_vs_baseline");
    line.speedup_low = number("speedup_low");
    line.speedup_high = number("speedup_high");
    line.cost = number("cost_usd");
    line.memory = number("peak_bytes_per_gpu");
    line.freeze_step = number("freeze_step");
    line.steps = number("steps");
    line.status = table.text(i, "status");
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string names_of(const std::vector<Axis>& axes) {
  std::string out;
  for (const auto& [key, values] : axes) out += (out.empty() ? "" : ", ") + key;
  return out;
}

std::string answer_of(const std::vector<Axis>& axes, const std::vector<Line>& lines) {
  const Line *fastest = nullptr, *pays = nullptr;
  const bool any_sound = std::any_of(lines.begin(), lines.end(), [](const Line& line) {
    return line.ok() && (line.judged() || !line.compresses());
  });
  for (const Line& line : lines) {
    if (!line.ok() || (any_sound && line.compresses() && !line.judged())) continue;
    if (fastest == nullptr || line.time_s < fastest->time_s) fastest = &line;
    if (line.judged() && (pays == nullptr || line.speedup > pays->speedup)) pays = &line;
  }
  if (fastest == nullptr) return fmt::format("None of {} points runs.\n", lines.size());
  std::string out = fmt::format("Fastest by {}: {}, {} a run.", names_of(axes), fastest->name(),
                                run_time_text(fastest->time_s));
  if (pays != nullptr)
    out += fmt::format(" Compression {} with {}: {:.2f}x ({:.2f} to {:.2f}x).",
                       pays->speedup > 1 ? "wins most" : "pays nowhere, and loses least",
                       pays->name(), pays->speedup, pays->speedup_low, pays->speedup_high);
  return out + "\n";
}

std::string or_dash(double value, const std::string& text) {
  return std::isnan(value) ? "-" : text;
}

// "nic.bandwidth": whose it is, its name says.
std::string heading_of(const std::string& key) {
  for (const char* whose : {"cluster.", "model.", "device."})
    if (key.starts_with(whose)) return key.substr(key.find('.') + 1);
  return key;
}

// What all points lack takes no room: speed-ups of plain optimizers, costs without a price.
struct Shown {
  bool speedups = false, costs = false;
};

std::string head_line(const Shown& shown) {
  std::string out = fmt::format("{:>9} {:>9}", "run", "samples/s");
  if (shown.speedups) out += fmt::format(" {:>8} {:>12}", "speed-up", "within");
  if (shown.costs) out += fmt::format(" {:>6}", "USD");
  return out + fmt::format(" {:>8}\n", "memory");
}

std::string figures_of(const Line& line, const Shown& shown) {
  std::string out = fmt::format("{:>9} {:>9.4g}", time_cell(line.time_s), line.samples_per_s);
  if (shown.speedups)
    out += fmt::format(" {:>8} {:>12}", or_dash(line.speedup, fmt::format("{:.2f}x", line.speedup)),
                       or_dash(line.speedup, fmt::format("{:.2f} to {:.2f}", line.speedup_low,
                                                         line.speedup_high)));
  if (shown.costs) out += fmt::format(" {:>6}", or_dash(line.cost, usd_cell(line.cost)));
  return out + fmt::format(" {:>8}{}\n", bytes_cell(Bytes(line.memory)),
                           line.ok() ? "" : " does not fit");
}

}  // namespace

std::string sweep_table(const SweepPoints& points, const std::vector<std::string>& rows) {
  const std::vector<Axis> axes = axes_of(points);
  const std::vector<Line> lines = lines_of(points, axes, rows);
  std::string out = fmt::format("{}\n", answer_of(axes, lines));
  Shown shown;
  for (const Line& line : lines) {
    shown.speedups = shown.speedups || !std::isnan(line.speedup);
    shown.costs = shown.costs || !std::isnan(line.cost);
  }
  std::vector<std::size_t> widths;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    const std::string heading = heading_of(axes[a].first);
    std::size_t width = heading.size();
    for (const Line& line : lines) width = std::max(width, line.varied[a].size());
    widths.push_back(width);
    out += fmt::format("{:<{}} ", heading, width);
  }
  out += head_line(shown);
  for (const Line& line : lines) {
    for (std::size_t a = 0; a < axes.size(); ++a)
      out += fmt::format("{:<{}} ", line.varied[a], widths[a]);
    out += std::isnan(line.time_s) ? line.status + "\n" : figures_of(line, shown);
  }
  return out;
}

}  // namespace lambcast
