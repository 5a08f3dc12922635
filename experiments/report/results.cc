#include "experiments/report/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "experiments/report/step_cells.h"
#include "experiments/report/text_map.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lambcast::report {
namespace {

struct TextField {
  const char* title;
  Name Point::*field;
  bool late = false;  // follows `cost_source`, the end of the promised order; older files lack it
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

constexpr std::size_t settings_field =
    std::ranges::find(text_fields, &Point::settings, &TextField::field) - text_fields;

// Limit of the different texts of a column that are cached. The cache is cleared when it is full.
constexpr std::size_t most_known = 1 << 15;

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
                                         {"run_time_low_s", &Point::run_low_s, true},
                                         {"run_time_high_s", &Point::run_high_s, true},
                                         {"speedup_low", &Point::speedup_low, true},
                                         {"speedup_high", &Point::speedup_high, true},
                                         {"warmup_steps", &Point::warmup_steps, true},
                                         {"fused_speedup", &Point::fused_speedup, true},
                                         {"fused_speedup_low", &Point::fused_low, true},
                                         {"fused_speedup_high", &Point::fused_high, true}};

struct Settings {
  std::string rest;      // "a=1; b=2": settings that no other field of a point holds
  std::string exchange;  // exchange other than the uncompressed one; may be empty
};

// Returns the settings of "a=1; samples=9; b=2; exchange=fp8".
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

class RowReader {
 public:
  explicit RowReader(const csv::Reader& file) : file_(file), cells_(file), steps_(file) {
    const auto column = [&](const char* title, bool late) {
      return late ? file.find(title) : file.column(title);
    };
    for (const TextField& field : text_fields) texts_.push_back({column(field.title, field.late)});
    for (const NumberField& field : number_fields)
      numbers_.push_back(column(field.title, field.late));
    calibrated_ = file.find("communication_calibrated");
  }

  // Counts a row by its sources and its interval widths.
  void add_grounds(const Point& point, Grounds& grounds) {
    if (!point.ok()) return;
    if (calibrated_ && !file_.text(*calibrated_).empty())
      ++(file_.text(*calibrated_) == "true" ? grounds.calibrated : grounds.extrapolated);
    const StepCells::Ends ends = steps_.ends(point.kinds);
    if (!(ends.below_percent >= 0 && ends.above_percent >= 0)) return;
    ++grounds.below_percent[ends.below_percent];
    ++grounds.above_percent[ends.above_percent];
  }

  // Returns the memory of the steps of all rows so far.
  std::size_t step_bytes() const { return steps_.bytes(); }

  Point point() {
    Point p;
    for (std::size_t i = 0; i < std::size(text_fields); ++i) p.*text_fields[i].field = text(i);
    const Name exchange = texts_[settings_field].said.exchange;
    // A row that did not run keeps the text of its settings, which may be no number: a freeze_step
    // of "10%".
    if (!p.ok()) return p;
    if (!exchange.empty() && p.optimizer == p.baseline)
      p.optimizer = fmt::format("{} with {}", p.optimizer, exchange);
    for (std::size_t i = 0; i < std::size(number_fields); ++i) {
      // These may be zero: a run may compress from its first step, and pictures have no sequence.
      const bool zero = number_fields[i].field == &Point::freeze_step ||
                        number_fields[i].field == &Point::warmup_steps ||
                        number_fields[i].field == &Point::seq_len;
      if (numbers_[i]) p.*number_fields[i].field = cells_.read(*numbers_[i], zero);
    }
    p.kinds = steps_.read();
    return p;
  }

 private:
  // Content of a cell: its text; for `settings` also the exchange named there.
  struct Said {
    Name name = {};
    Name exchange = {};
  };
  // A column of texts. Consecutive rows mostly have the same text, which is then not looked up
  // again.
  struct TextColumn {
    std::optional<std::size_t> column;
    std::string last = {};
    Said said = {};
    TextMap<Said> known = {};
  };

  Name text(std::size_t field) {
    TextColumn& column = texts_[field];
    if (!column.column) return {};
    const std::string_view text = file_.text(*column.column);
    if (text != column.last) {
      column.last = text;
      auto known = column.known.find(text);
      if (known == column.known.end()) {
        if (column.known.size() == most_known) column.known.clear();
        known = column.known.emplace(text, said(field, text)).first;
      }
      column.said = known->second;
    }
    return column.said.name;
  }

  static Said said(std::size_t field, std::string_view text) {
    const std::string clean = printable(text);
    if (text_fields[field].field != &Point::settings) return {Name(clean)};
    const Settings settings = settings_of(clean);
    return {Name(settings.rest), Name(settings.exchange)};
  }

  const csv::Reader& file_;
  NumberCells cells_;
  std::vector<TextColumn> texts_;
  std::vector<std::optional<std::size_t>> numbers_;
  StepCells steps_;
  std::optional<std::size_t> calibrated_;
};

}  // namespace

Results read_results(csv::Reader reader, std::size_t most_bytes) {
  Results results{Listing(reader)};
  RowReader rows(reader);
  KeptRows kept(reader.bytes() / reader.header().size(), most_bytes);
  Tally tally;
  while (reader.next()) {
    if (results.listing.rows() == most_points)
      fail_input({reader.name(), reader.line(), {}}, "has more rows than a sweep may have",
                 fmt::format("{}", most_points));
    Point point = rows.point();
    tally.add(point);
    rows.add_grounds(point, results.grounds);
    const bool listed = results.listing.add(reader);
    kept.add(std::move(point), listed, rows.step_bytes(), results.listing);
  }
  results.points = kept.take(results.listing);
  results.summary = summary_of(tally.counts(), results.points,
                               kept.all() ? std::string() : results.listing.thinning());
  return results;
}

}  // namespace lambcast::report
