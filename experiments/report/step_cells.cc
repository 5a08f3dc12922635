#include "experiments/report/step_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/error.h"

namespace lambcast::report {
namespace {

// Limit of any number: larger than those of any cluster or run, and safe to multiply.
constexpr double largest = 1e18;

// Limit of the parsed texts that are cached for rows with equal step columns. The cache is cleared
// when it is full.
constexpr std::size_t most_texts = 1 << 15;

double parsed_number(const csv::Reader& file, std::size_t column, bool zero_allowed) {
  const std::string_view text = file.text(column);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = status == std::errc{} && end == text.data() + text.size();
  if (whole && (zero_allowed ? value >= 0 : value > 0) && value <= largest) return value;
  fail_input({file.name(), file.line(), file.header()[column]},
             whole && std::isfinite(value) ? fmt::format("{} is what no run has", text)
                                           : fmt::format("'{}' is not a finite number", text),
             fmt::format("{} 0, up to {:g}", zero_allowed ? "from" : "above", largest));
}

}  // namespace

double NumberCells::read(std::size_t column, bool zero_allowed) {
  const std::string_view text = file_.text(column);
  if (text.empty()) return absent;
  Last& last = last_[column];
  if (text != last.text) {
    last.value = parsed_number(file_, column, zero_allowed);
    last.text = text;
  }
  return last.value;
}

StepCells::StepCells(const csv::Reader& file) : file_(file), numbers_(file) {
  for (std::size_t place = 0; place < step_kinds.size(); ++place) {
    const std::string_view kind = name_of(step_kinds[place]);
    const std::string time = fmt::format("{}_step_time_us", kind);
    if (place >= first_step_kinds && !file.find(time)) continue;
    Columns columns{step_kinds[place], file.column(time), {}, {}, {}, 0, 0, {}, {}};
    for (const std::string_view part : step_parts)
      columns.parts.push_back(file.column(fmt::format("{}_{}_us", kind, part)));
    columns.low = file.find(fmt::format("{}_step_time_low_us", kind));
    columns.high = file.find(fmt::format("{}_step_time_high_us", kind));
    const auto [first, last] = std::ranges::minmax(columns.parts);
    columns.first = std::min(first, columns.time);
    columns.last = std::max(last, columns.time);
    kinds_.push_back(std::move(columns));
  }
}

// Returns the text of the columns, joined by commas.
std::string StepCells::text_of(const Columns& columns) const {
  std::string text;
  for (std::size_t cell = columns.first; cell <= columns.last; ++cell)
    text.append(file_.text(cell)).push_back(',');
  return text;
}

// Returns the text of the ends of the step time, which are in other columns than its parts.
std::string StepCells::ends_of(const Columns& columns) const {
  std::string text;
  for (const auto& end : {columns.low, columns.high})
    if (end) text.append(file_.text(*end)).push_back(',');
  return text;
}

StepsByKind StepCells::read() {
  bool new_text = false;
  for (Columns& columns : kinds_) {
    const std::string_view stretch = file_.stretch(columns.first, columns.last);
    std::string ends = ends_of(columns);
    if (!stretch.empty() && stretch == columns.said && ends == columns.ends) continue;
    columns.said = stretch.empty() ? text_of(columns) : std::string(stretch);
    columns.ends = std::move(ends);
    new_text = true;
  }
  if (!new_text) return last_;
  std::string said;
  for (const Columns& columns : kinds_) said.append(columns.said + columns.ends).push_back('\n');
  if (known_.size() == most_texts) known_.clear();
  auto known = known_.find(said);
  if (known == known_.end()) known = known_.emplace(std::move(said), parsed()).first;
  return last_ = known->second;
}

StepsByKind StepCells::parsed() {
  std::vector<StepFigures> figures;
  for (const Columns& columns : kinds_) {
    if (file_.text(columns.time).empty()) continue;
    StepFigures& step = figures.emplace_back();
    step.kind = columns.kind;
    step.step_time_us = numbers_.read(columns.time, false);
    if (columns.low) step.low_us = numbers_.read(*columns.low, true);
    if (columns.high) step.high_us = numbers_.read(*columns.high, true);
    for (std::size_t i = 0; i < step_parts.size(); ++i)
      if (!file_.text(columns.parts[i]).empty())
        step.parts_us[i] = numbers_.read(columns.parts[i], true);
  }
  bytes_ += sizeof(figures) + figures.size() * sizeof(StepFigures);
  return figures;
}

StepCells::Ends StepCells::ends(const StepsByKind& steps) {
  Ends ends;
  for (const StepFigures& step : steps) {
    const Columns& columns = *std::ranges::find(kinds_, step.kind, &Columns::kind);
    if (!columns.low || !columns.high) continue;
    const auto widen = [&](double& percent, std::size_t end) {
      if (file_.text(end).empty()) return;
      const double off = numbers_.read(end, true) / step.step_time_us - 1;
      percent = std::max(percent, std::nearbyint(100 * std::abs(off)));
    };
    widen(ends.below_percent, *columns.low);
    widen(ends.above_percent, *columns.high);
  }
  return ends;
}

}  // namespace lambcast::report
