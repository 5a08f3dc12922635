#include "experiments/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <unordered_map>

#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lambcast::report {
namespace {

// Beyond any cluster and any run, and small enough for figures to multiply.
constexpr double largest = 1e18;

struct TextField {
  const char* title;
  Name Point::*field;
  bool late =
      false;  // stands after `cost_source`, the end of the promised order: older files lack it
};
constexpr TextField text_fields[] = {{"model", &Point::model},
                                     {"cluster", &Point::cluster},
                                     {"optimizer", &Point::optimizer},
                                     {"backend", &Point::backend},
                                     {"baseline_optimizer", &Point::baseline},
                                     {"status", &Point::status},
                                     {"cost_source", &Point::cost_source},
                                     {"cuda_aware", &Point::cuda_aware, true},
                                     {"kernels", &Point::kernels, true},
                                     {"network", &Point::network, true},
                                     {"device", &Point::device, true},
                                     {"precision", &Point::precision, true},
                                     {"zero_stage", &Point::zero_stage, true},
                                     {"overlap", &Point::overlap, true},
                                     {"symmetry", &Point::symmetry, true},
                                     {"settings", &Point::settings, true},
                                     {"measure_first", &Point::measure_first, true},
                                     {"findings", &Point::findings, true}};

struct NumberField {
  const char* title;
  double Point::*field;
  bool late = false;
};
constexpr NumberField number_fields[] = {{"nodes", &Point::nodes},
                                         {"gpus", &Point::gpus},
                                         {"micro_batch", &Point::micro_batch},
                                         {"grad_accum", &Point::grad_accum},
                                         {"global_batch", &Point::global_batch},
                                         {"seq_len", &Point::seq_len},
                                         {"steps", &Point::steps},
                                         {"freeze_step", &Point::freeze_step},
                                         {"run_time_s", &Point::run_time_s},
                                         {"run_samples_per_s", &Point::samples_per_s},
                                         {"speedup_vs_baseline", &Point::speedup},
                                         {"gpus_per_node", &Point::gpus_per_node, true},
                                         {"nic_bandwidth_Gbps", &Point::nic_Gbps, true},
                                         {"run_tokens_per_s", &Point::tokens_per_s, true},
                                         {"speedup_low", &Point::speedup_low, true},
                                         {"speedup_high", &Point::speedup_high, true},
                                         {"warmup_steps", &Point::warmup_steps, true},
                                         {"fused_speedup", &Point::fused_speedup, true},
                                         {"fused_speedup_low", &Point::fused_low, true},
                                         {"fused_speedup_high", &Point::fused_high, true}};

struct Settings {
  std::string rest;      // "a=1; b=2": those that no number of a point and no name says already
  std::string exchange;  // other than the one of all bits; may be empty
};

// Of "a=1; samples=9; b=2; exchange=fp8".
Settings settings_of(std::string_view text) {
  constexpr std::string_view exchange = "exchange=";
  Settings found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("; ", begin), text.size());
    const std::string_view setting = text.substr(begin, end - begin);
    if (setting.starts_with(exchange))
      found.exchange = setting.substr(exchange.size());
    else if (!setting.starts_with("cluster.nic.bandwidth=") && !setting.starts_with("samples="))
      found.rest.append(found.rest.empty() ? "" : "; ").append(setting);
    begin = end + 2;
  }
  if (found.exchange == "all_reduce") found.exchange.clear();
  return found;
}

// Rows with the same figures share them while there are not too many.
class SharedSteps {
 public:
  StepsByKind of(const std::vector<StepFigures>& figures) {
    if (!std::ranges::equal(last_, figures)) last_ = find(figures);
    return last_;
  }

 private:
  static constexpr std::size_t most = 1 << 16;

  StepsByKind find(const std::vector<StepFigures>& figures) {
    if (kept_.size() == most) kept_.clear();
    std::vector<StepsByKind>& alike = kept_[hash_of(figures)];
    for (const StepsByKind& steps : alike)
      if (std::ranges::equal(steps, figures)) return steps;
    return alike.emplace_back(figures);
  }

  static std::size_t hash_of(const std::vector<StepFigures>& figures) {
    std::size_t hash = 0;
    const auto add = [&](double value) { hash = 31 * hash + std::hash<double>()(value); };
    for (const StepFigures& step : figures) {
      add(step.step_time_us);
      for (const double part : step.parts_us) add(part);
    }
    return hash;
  }

  StepsByKind last_;
  std::unordered_map<std::size_t, std::vector<StepsByKind>> kept_;
};

class RowReader {
 public:
  explicit RowReader(const csv::Reader& file) : file_(file), read_(file.header().size()) {
    const auto column = [&](const char* title, bool late) {
      return late ? file.find(title) : file.column(title);
    };
    for (const TextField& field : text_fields) texts_.push_back({column(field.title, field.late)});
    for (const NumberField& field : number_fields)
      numbers_.push_back(column(field.title, field.late));
    for (std::size_t place = 0; place < step_kinds.size(); ++place) {
      const std::string_view kind = name_of(step_kinds[place]);
      const std::string time = fmt::format("{}_step_time_us", kind);
      if (place >= first_step_kinds && !file.find(time)) continue;
      StepColumns columns{step_kinds[place], file.column(time), {}, {}, {}};
      for (const std::string_view part : step_parts)
        columns.parts.push_back(file.column(fmt::format("{}_{}_us", kind, part)));
      columns.low = file.find(fmt::format("{}_step_time_low_us", kind));
      columns.high = file.find(fmt::format("{}_step_time_high_us", kind));
      kinds_.push_back(std::move(columns));
    }
    calibrated_ = file.find("communication_calibrated");
  }

  // Of the row that `point` was read from.
  void add_grounds(const Point& point, Grounds& grounds) {
    if (!point.ok()) return;
    if (calibrated_ && !file_.text(*calibrated_).empty())
      ++(file_.text(*calibrated_) == "true" ? grounds.calibrated : grounds.extrapolated);
    float below = -1, above = -1;
    for (const StepFigures& step : point.kinds) {
      const StepColumns& ends = *std::ranges::find(kinds_, step.kind, &StepColumns::kind);
      if (!ends.low || !ends.high) continue;
      const auto percent = [&](std::size_t column) {
        return static_cast<float>(100 * std::abs(number(column, true) / step.step_time_us - 1));
      };
      below = std::max(below, percent(*ends.low));
      above = std::max(above, percent(*ends.high));
    }
    if (!(below >= 0 && above >= 0)) return;
    grounds.below_percent.push_back(below);
    grounds.above_percent.push_back(above);
  }

  Point point() {
    Point p;
    for (std::size_t i = 0; i < std::size(text_fields); ++i) p.*text_fields[i].field = text(i);
    // A row that did not run keeps what was asked for, which may be no number: a freeze_step of
    // "10%".
    if (!p.ok()) return p;
    if (!exchange_.empty() && p.optimizer == p.baseline)
      p.optimizer = fmt::format("{} with {}", p.optimizer, exchange_);
    for (std::size_t i = 0; i < std::size(number_fields); ++i) {
      // A run may compress from its first step, and pictures have no sequence.
      const bool zero = number_fields[i].field == &Point::freeze_step ||
                        number_fields[i].field == &Point::warmup_steps ||
                        number_fields[i].field == &Point::seq_len;
      if (numbers_[i]) p.*number_fields[i].field = number(*numbers_[i], zero);
    }
    figures_.clear();
    for (const StepColumns& columns : kinds_) {
      if (file_.text(columns.time).empty()) continue;
      StepFigures& step = figures_.emplace_back();
      step.kind = columns.kind;
      step.step_time_us = number(columns.time, false);
      for (std::size_t i = 0; i < step_parts.size(); ++i)
        step.parts_us[i] =
            file_.text(columns.parts[i]).empty() ? 0 : number(columns.parts[i], true);
    }
    p.kinds = shared_.of(figures_);
    return p;
  }

 private:
  // Rows that follow one another mostly say the same, which is not looked up again.
  struct TextColumn {
    std::optional<std::size_t> column;
    std::string last = {};
    Name name = {};
  };

  Name text(std::size_t field) {
    TextColumn& column = texts_[field];
    if (!column.column) return {};
    const std::string_view text = file_.text(*column.column);
    if (text != column.last) {
      column.last = text;
      std::string clean = printable(text);
      if (text_fields[field].field == &Point::settings) {
        Settings settings = settings_of(clean);
        clean = std::move(settings.rest);
        exchange_ = std::move(settings.exchange);
      }
      column.name = clean;
    }
    return column.name;
  }

  double number(std::size_t column, bool zero_allowed) {
    const std::string_view text = file_.text(column);
    if (text.empty()) return absent;
    NumberRead& read = read_[column];
    if (text != read.text) read = {std::string(text), parsed(column, zero_allowed)};
    return read.value;
  }

  double parsed(std::size_t column, bool zero_allowed) const {
    const std::string_view text = file_.text(column);
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = status == std::errc{} && end == text.data() + text.size();
    if (whole && (zero_allowed ? value >= 0 : value > 0) && value <= largest) return value;
    fail_input({file_.name(), file_.line(), file_.header()[column]},
               whole && std::isfinite(value) ? fmt::format("{} is what no run has", text)
                                             : fmt::format("'{}' is not a finite number", text),
               fmt::format("{} 0, up to {:g}", zero_allowed ? "from" : "above", largest));
  }

  struct NumberRead {
    std::string text;
    double value = absent;
  };

  const csv::Reader& file_;
  std::vector<NumberRead> read_;  // of each column of the file
  std::vector<TextColumn> texts_;
  std::vector<std::optional<std::size_t>> numbers_;
  struct StepColumns {
    StepKind kind;
    std::size_t time;
    std::vector<std::size_t> parts;
    std::optional<std::size_t> low, high;  // of the interval of its step time
  };
  std::vector<StepColumns> kinds_;
  std::vector<StepFigures> figures_;  // of the row being read
  std::string exchange_;              // of the settings read last
  SharedSteps shared_;
  std::optional<std::size_t> calibrated_;
};

}  // namespace

Results read_results(csv::Reader reader) {
  Results results{{}, Listing(reader), {}};
  RowReader rows(reader);
  while (reader.next()) {
    if (results.points.size() == most_points)
      fail_input({reader.name(), reader.line(), {}}, "has more rows than a sweep may have",
                 fmt::format("{}", most_points));
    results.points.push_back(rows.point());
    rows.add_grounds(results.points.back(), results.grounds);
    results.listing.add(reader);
  }
  return results;
}

}  // namespace lambcast::report
