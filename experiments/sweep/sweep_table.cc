#include "experiments/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <sstream>

#include "experiments/output/cell.h"
#include "experiments/output/flat_key.h"
#include "experiments/output/forecast_output.h"
#include "experiments/sweep/common_length.h"
#include "experiments/sweep/result_row.h"
#include "experiments/sweep/run_row.h"
#include "experiments/verdict/equal_work.h"
#include "experiments/verdict/turns.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

struct Sweep {
  const SweepPoints& points;
  std::optional<std::int64_t> common_steps;
  std::vector<Axis> axes;
  std::vector<RunRow> rows;
  EqualWork work;

  std::string name(std::size_t point) const { return point_name(points[point], axes); }
  std::string name(const RunRow& row) const { return name(index_of(row)); }
  // Returns the value of the first varied key.
  std::string value(const RunRow& row) const {
    return values_of(points[index_of(row)], axes).front();
  }
  std::size_t index_of(const RunRow& row) const {
    return static_cast<std::size_t>(&row - rows.data());
  }
};

Sweep sweep_of(const SweepPlan& plan, const std::vector<std::string>& lines) {
  std::string text = csv::row(result_columns()) + "\n";
  for (const std::string& line : lines) text += line + "\n";
  const csv::Table table = csv::parse(text, "the sweep");
  Sweep sweep{plan.points, plan.common_steps, axes_of(plan.points), {}, {}};
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    sweep.rows.push_back(run_row_of(table, i));
    const RunRow& row = sweep.rows.back();
    if (row.ok()) sweep.work.add(row.samples, row.tokens);
  }
  return sweep;
}

// Returns the time of the row for equal work.
double time_s(const Sweep& sweep, const RunRow& row) {
  return row.time_s * sweep.work.share(row.samples, row.tokens);
}
double cost_usd(const Sweep& sweep, const RunRow& row) {
  return row.cost_usd * sweep.work.share(row.samples, row.tokens);
}

std::string fastest_sentence(const Sweep& sweep, const std::vector<const RunRow*>& rows) {
  const RunRow& best =
      **std::ranges::min_element(rows, {}, [&](const RunRow* row) { return time_s(sweep, *row); });
  const std::string one_key =
      sweep.axes.size() == 1 ? fmt::format(" by {}", sweep.axes.front().first) : "";
  std::string out = fmt::format("Fastest{}: {}, {} a run{}", one_key,
                                one_key.empty() ? sweep.name(best) : sweep.value(best),
                                time_and_range(best.time_s, best.time_low_s, best.time_high_s),
                                assumed_run_text(sweep.common_steps));
  if (!sweep.work.is_a_run())
    out += fmt::format(", {} a {}", run_time_text(time_s(sweep, best)), sweep.work.name());
  const auto others = std::ranges::count_if(rows, [&](const RunRow* row) {
    return row != &best && time_s(sweep, *row) < time_s(sweep, best) * (1 + 1e-6);
  });
  if (others > 0)
    out += fmt::format("; {} {} as long", others, others == 1 ? "other takes" : "others take");
  return out + ".";
}

std::string cheapest_sentence(const Sweep& sweep, const std::vector<const RunRow*>& rows) {
  const RunRow* best = nullptr;
  for (const RunRow* row : rows)
    if (!std::isnan(row->cost_usd) &&
        (best == nullptr || cost_usd(sweep, *row) < cost_usd(sweep, *best)))
      best = row;
  if (best == nullptr) return fmt::format("Cost: {}.\n", no_price_text());
  if (rows.size() < 2) return "";
  std::string out = fmt::format("Cheapest: {}, {} USD a run ({} to {})", sweep.name(*best),
                                usd_cell(best->cost_usd), usd_cell(best->cost_low_usd),
                                usd_cell(best->cost_high_usd));
  if (!sweep.work.is_a_run())
    out += fmt::format(", {} USD a {}", usd_cell(cost_usd(sweep, *best)), sweep.work.name());
  return out + ".\n";
}

// Describes the curves over GPUs that are not monotone; rows of one curve agree in all other keys.
std::string turns_over_gpus(const Sweep& sweep) {
  std::vector<Axis> others;
  for (const Axis& axis : sweep.axes)
    if (axis.first != "gpus" && axis.first != "nodes") others.push_back(axis);
  if (others.size() == sweep.axes.size()) return "";
  std::map<std::string, StepsOverGpus> curves;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const RunRow& row = sweep.rows[i];
    if (!row.ok()) continue;
    const std::string of = others.empty() ? "" : point_name(sweep.points[i], others);
    StepsOverGpus& curve = curves.try_emplace(of, StepsOverGpus{of, {}, {}}).first->second;
    curve.gpus.push_back(row.gpus);
    curve.step_s.push_back(row.time_s / row.steps);
  }
  std::vector<StepsOverGpus> sorted;
  for (auto& [of, curve] : curves) {
    curve.sort();
    sorted.push_back(std::move(curve));
  }
  return turns_text(sorted);
}

// Describes points at which a faster NIC gives a longer step. If only the NIC differs, this happens
// only if NCCL's tuning chooses another algorithm, by constants that differ from those of its run
// time.
std::string longer_on_faster_nics(const Sweep& sweep) {
  constexpr std::string_view key = "cluster.nic.bandwidth";
  constexpr double longer = 1.001;
  std::vector<Axis> others;
  for (const Axis& axis : sweep.axes)
    if (axis.first != key) others.push_back(axis);
  if (others.size() == sweep.axes.size()) return "";
  std::map<std::string, std::map<Bandwidth, const RunRow*>> curves;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const WhatIf point = sweep.points[i];
    const auto nic = point.find(std::string(key));
    if (!sweep.rows[i].ok() || nic == point.end()) continue;
    const std::string of = others.empty() ? "" : point_name(point, others);
    curves[of][parse_bandwidth(nic->second, {})] = &sweep.rows[i];
  }
  const auto step_ms = [](const RunRow& row) { return row.time_s / row.steps * 1e3; };
  std::vector<std::string> places;
  for (const auto& [of, curve] : curves)
    for (auto after = curve.begin(); after != curve.end(); ++after) {
      if (after == curve.begin()) continue;
      const RunRow &slow = *std::prev(after)->second, &fast = *after->second;
      if (step_ms(fast) > step_ms(slow) * longer)
        places.push_back(fmt::format("{:.1f} ms at {}, {:.1f} ms at {}", step_ms(slow),
                                     sweep.name(slow), step_ms(fast), sweep.name(fast)));
    }
  if (places.empty()) return "";
  return fmt::format(
      "A step is longer on a faster NIC: {}{}. Between them NCCL's own tuning tips to another "
      "algorithm or protocol, which simulate --explain prices names.\n",
      places.front(), places.size() > 1 ? fmt::format(", and {} more", places.size() - 1) : "");
}

// Returns the figures of a row that a varied key may change.
std::vector<double> figures_of(const RunRow& row) {
  return {row.time_s, row.samples, row.cost_usd, row.memory,
          row.speedup ? row.speedup->value : RunRow::absent};
}

// Returns whether rows that differ only in this key always have equal figures. False if no two
// rows differ only in it.
bool moves_nothing(const Sweep& sweep, const std::string& key) {
  std::vector<Axis> others;
  for (const Axis& axis : sweep.axes)
    if (axis.first != key) others.push_back(axis);
  std::map<std::string, const RunRow*> first;
  bool compared = false;
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const RunRow& row = sweep.rows[i];
    const std::string of = others.empty() ? "" : point_name(sweep.points[i], others);
    const auto [place, fresh] = first.try_emplace(of, &row);
    if (fresh) continue;
    compared = true;
    const std::vector<double> one = figures_of(*place->second), other = figures_of(row);
    for (std::size_t f = 0; f < one.size(); ++f)
      if (!is_flat(std::array{one[f], other[f]})) return false;
    if (row.status != place->second->status) return false;
  }
  return compared;
}

// Lists the varied keys without effect, each with the limit that applies instead.
std::string keys_without_effect(const Sweep& sweep) {
  const auto ran = std::ranges::find_if(sweep.rows, &RunRow::ok);
  if (ran == sweep.rows.end()) return "";
  std::string out;
  for (const auto& [key, values] : sweep.axes) {
    if (values.size() < 2 || !moves_nothing(sweep, key)) continue;
    Catalog catalog;
    const WhatIf point = sweep.points[static_cast<std::size_t>(ran - sweep.rows.begin())];
    out += flat_key_text(key, resolve(point, catalog).training) + "\n";
  }
  return out;
}

std::string answer_of(const Sweep& sweep) {
  const std::vector<const RunRow*> rows = sound_rows(sweep.rows);
  if (rows.empty()) return fmt::format("None of {} points runs.\n", sweep.rows.size());
  std::string out = fastest_sentence(sweep, rows);
  if (!sweep.work.is_a_run()) out += fmt::format(" {}", sweep.work.reason());
  out += fmt::format("\n{}", cheapest_sentence(sweep, rows));
  const RowVerdicts verdicts = verdicts_of(sweep.rows);
  const std::string pays =
      in_words(verdicts.own, verdicts.fused, [&](std::size_t point) { return sweep.name(point); });
  if (!pays.empty()) out += pays + "\n";
  const std::string rest = left_out_text(verdicts.left_out);
  if (!rest.empty()) out += fmt::format("Left out of these: {}.\n", rest);
  if (const std::string turns = turns_over_gpus(sweep); !turns.empty()) out += turns + "\n";
  return out + longer_on_faster_nics(sweep) + keys_without_effect(sweep);
}

// Strips the description's prefix, which the key name already implies: "nic.bandwidth".
std::string heading_of(const std::string& key) {
  for (const char* whose : {"cluster.", "model.", "device."})
    if (key.starts_with(whose)) return key.substr(key.find('.') + 1);
  return key;
}

struct Column {
  std::string title;
  std::string (*text)(const RunRow& row);
  int rank;  // of the columns that do not fit on a page, the lowest ranks are dropped
};
constexpr int always_kept = 5;

std::string or_dash(double value, const std::string& text) {
  return std::isnan(value) ? "-" : text;
}

bool has_time(const RunRow& row) { return !std::isnan(row.time_s); }

// Returns the width of the longest cell.
std::size_t width_of(const Column& column, const std::vector<RunRow>& rows) {
  std::size_t width = column.title.size();
  for (const RunRow& row : rows)
    if (has_time(row)) width = std::max(width, column.text(row).size());
  return width;
}

// Returns the columns in the order of the table.
std::vector<Column> columns_of(const std::vector<RunRow>& rows) {
  const auto any = [&](auto has) { return std::ranges::any_of(rows, has); };
  std::vector<Column> columns{
      {"run", [](const RunRow& row) { return time_cell(row.time_s); }, always_kept},
      {"within",
       [](const RunRow& row) { return time_range(row.time_s, row.time_low_s, row.time_high_s); },
       3},
      {"samples/s",
       [](const RunRow& row) {
         const double rate = row.samples / row.time_s;
         return rate < 9999.5 ? fmt::format("{:.4g}", rate) : fmt::format("{:.0f}", rate);
       },
       1}};
  if (any([](const RunRow& row) { return row.speedup.has_value(); })) {
    columns.push_back({"speed-up",
                       [](const RunRow& row) {
                         return row.speedup ? fmt::format("{:.2f}x", row.speedup->value)
                                            : std::string("-");
                       },
                       always_kept});
    columns.push_back({"within",
                       [](const RunRow& row) {
                         return row.speedup ? fmt::format("{:.2f} to {:.2f}", row.speedup->low,
                                                          row.speedup->high)
                                            : std::string("-");
                       },
                       4});
  }
  if (any([](const RunRow& row) { return !std::isnan(row.cost_usd); }))
    columns.push_back(
        {"USD", [](const RunRow& row) { return or_dash(row.cost_usd, usd_cell(row.cost_usd)); },
         always_kept});
  columns.push_back({"memory", [](const RunRow& row) { return bytes_cell(Bytes(row.memory)); }, 2});
  return columns;
}

// Drops columns, which results.csv has too, until the others fit.
void make_room(std::vector<Column>& columns, const std::vector<RunRow>& rows, std::size_t room) {
  const auto width = [&] {
    std::size_t sum = 0;
    for (const Column& column : columns) sum += width_of(column, rows) + 1;
    return sum;
  };
  while (width() > room) {
    const auto least = std::ranges::min_element(columns, {}, &Column::rank);
    if (least->rank == always_kept) return;
    columns.erase(least);
  }
}

// Formats the table, with one column for each varied key before those of the figures.
std::string table_of(const Sweep& sweep) {
  std::vector<std::vector<std::string>> varied(1);  // the headings come first
  for (const auto& [key, values] : sweep.axes) varied.front().push_back(heading_of(key));
  for (std::size_t i = 0; i < sweep.rows.size(); ++i)
    varied.push_back(values_of(sweep.points[i], sweep.axes));
  std::vector<std::size_t> widths(sweep.axes.size());
  std::size_t before = 0;
  for (std::size_t a = 0; a < widths.size(); ++a) {
    for (const auto& values : varied) widths[a] = std::max(widths[a], values[a].size());
    before += widths[a] + 1;
  }
  const bool all_fit = std::ranges::all_of(sweep.rows, [](const RunRow& row) { return row.ok(); });
  if (!all_fit) before += std::string_view(" does not fit").size();
  const std::size_t room = page_width - std::min(page_width, before) + 1;
  std::vector<Column> columns = columns_of(sweep.rows);
  make_room(columns, sweep.rows, room);
  std::vector<std::size_t> column_widths;
  for (const Column& column : columns) column_widths.push_back(width_of(column, sweep.rows));
  const auto begin = [&](const std::vector<std::string>& values) {
    std::string cells;
    for (std::size_t a = 0; a < values.size(); ++a)
      cells += fmt::format("{:<{}} ", values[a], widths[a]);
    return cells;
  };
  const auto cells = [&](const auto& text) {
    std::string line;
    for (std::size_t c = 0; c < columns.size(); ++c)
      line += fmt::format("{}{:>{}}", c == 0 ? "" : " ", text(columns[c]), column_widths[c]);
    return line;
  };
  std::string out =
      begin(varied.front()) + cells([](const Column& column) { return column.title; }) + "\n";
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const RunRow& row = sweep.rows[i];
    out += begin(varied[i + 1]);
    if (!has_time(row)) {
      out += row.status + "\n";
      continue;
    }
    out += cells([&](const Column& column) { return column.text(row); });
    out += row.ok() ? "\n" : " does not fit\n";
  }
  return out;
}

std::vector<std::string> rows_of(const std::filesystem::path& folder) {
  std::istringstream file(read_file(folder / "results.csv"));
  std::vector<std::string> rows;
  std::string line;
  std::getline(file, line);  // skip the header
  while (std::getline(file, line)) rows.push_back(std::move(line));
  return rows;
}

}  // namespace

std::string sweep_table(const SweepPlan& plan, const std::vector<std::string>& rows,
                        const FindingTally& findings) {
  const Sweep sweep = sweep_of(plan, rows);
  std::string out = answer_of(sweep) + "\n" + table_of(sweep);
  const std::vector<std::string> found =
      findings.sentences([&](std::size_t point) { return sweep.name(point); });
  if (!found.empty()) out += "\n";
  for (const std::string& sentence : found) out += sentence + "\n";
  return out;
}

std::string sweep_table(const SweepPlan& plan, const std::filesystem::path& folder) {
  return sweep_table(plan, rows_of(folder));
}

std::string keys_without_effect(const SweepPlan& plan, const std::filesystem::path& folder) {
  return keys_without_effect(sweep_of(plan, rows_of(folder)));
}

}  // namespace lambcast
