#include "experiments/report/step_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/error.h"

namespace lambcast::report {
namespace {

// Beyond any cluster and any run, and small enough for figures to multiply.
constexpr double largest = 1e18;

// Steps of rows that are all unlike are not looked for among more than these.
constexpr std::size_t most_texts = 1 << 15;

}  // namespace

double number_cell(const csv::Reader& file, std::size_t column, bool zero_allowed) {
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

StepCells::StepCells(const csv::Reader& file) : file_(file) {
  for (std::size_t place = 0; place < step_kinds.size(); ++place) {
    const std::string_view kind = name_of(step_kinds[place]);
    const std::string time = fmt::format("{}_step_time_us", kind);
    if (place >= first_step_kinds && !file.find(time)) continue;
    Columns columns{step_kinds[place], file.column(time), {}, {}, {}};
    for (const std::string_view part : step_parts)
      columns.parts.push_back(file.column(fmt::format("{}_{}_us", kind, part)));
    columns.low = file.find(fmt::format("{}_step_time_low_us", kind));
    columns.high = file.find(fmt::format("{}_step_time_high_us", kind));
    cells_.push_back(columns.time);
    cells_.insert(cells_.end(), columns.parts.begin(), columns.parts.end());
    kinds_.push_back(std::move(columns));
  }
}

StepsByKind StepCells::read() {
  said_.clear();
  for (const std::size_t cell : cells_) said_.append(file_.text(cell)).push_back(',');
  if (said_ == last_said_) return last_;
  if (known_.size() == most_texts) known_.clear();
  auto known = known_.find(said_);
  if (known == known_.end()) known = known_.emplace(said_, parsed()).first;
  last_said_ = said_;
  return last_ = known->second;
}

StepsByKind StepCells::parsed() {
  std::vector<StepFigures> figures;
  for (const Columns& columns : kinds_) {
    if (file_.text(columns.time).empty()) continue;
    StepFigures& step = figures.emplace_back();
    step.kind = columns.kind;
    step.step_time_us = number_cell(file_, columns.time, false);
    for (std::size_t i = 0; i < step_parts.size(); ++i)
      if (!file_.text(columns.parts[i]).empty())
        step.parts_us[i] = number_cell(file_, columns.parts[i], true);
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
      const double off = number_cell(file_, end, true) / step.step_time_us - 1;
      percent = std::max(percent, std::nearbyint(100 * std::abs(off)));
    };
    widen(ends.below_percent, *columns.low);
    widen(ends.above_percent, *columns.high);
  }
  return ends;
}

}  // namespace lambcast::report
