#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "embedded/study_files.h"
#include "experiments/forecast_output.h"
#include "experiments/sweep.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr std::size_t max_points = 10'000'000;

struct Bound {
  double value = 0;
  std::string unit;
};

Bound read_bound(std::string_view text, std::string_view scan, const Where& where) {
  Bound bound;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), bound.value);
  if (status != std::errc{} || !std::isfinite(bound.value))
    fail_input(where, fmt::format("'{}' is not a scan", scan), "low:high:xFACTOR or low:high:STEP");
  bound.unit = std::string(end, text.data() + text.size());
  return bound;
}

// The values of one grid entry: a list, one value, or a scan.
std::vector<std::string> entry_values(const Table& table, const std::string& key) {
  const Where where = table.where(key);
  if (const auto scan = table.find_text(key);
      scan && std::count(scan->begin(), scan->end(), ':') == 2)
    return expand_scan(*scan, where);
  std::vector<std::string> values = table.words(key);
  if (values.empty()) fail_input(where, "is empty");
  return values;
}

void check_key(const Table& table, const std::string& key) {
  const auto& known = what_if_keys();
  if (key.starts_with("cluster.") || key.starts_with("model.")) return;
  if (std::find(known.begin(), known.end(), key) == known.end())
    fail_unknown(table.where(key), "key", key, known);
}

// A sweep under construction: what all points share, what varies, and the variants.
struct Part {
  WhatIf base;
  std::vector<Axis> grid;
  std::vector<WhatIf> variants;
};

WhatIf read_what_if(const Table& table) {
  WhatIf what_if;
  for (const std::string& key : table.keys()) {
    check_key(table, key);
    const std::vector<std::string> values = table.words(key);
    if (values.size() != 1)
      fail_input(table.where(key), "takes one value here; lists go to [grid]");
    what_if[key] = values.front();
  }
  return what_if;
}

void set_axis(std::vector<Axis>& grid, const Axis& axis) {
  for (Axis& present : grid) {
    if (present.first != axis.first) continue;
    present.second = axis.second;
    return;
  }
  grid.push_back(axis);
}

// Adds what `table` says to `part`.
void read_part(const Table& table, Part& part) {
  for (const auto& [key, value] : read_what_if(table.table("base"))) part.base[key] = value;
  const Table grid = table.table("grid");
  for (const std::string& key : grid.keys()) {
    check_key(grid, key);
    set_axis(part.grid, {key, entry_values(grid, key)});
  }
  const auto variants = table.tables("variant");
  if (!variants.empty()) part.variants.clear();
  for (const Table& variant : variants) part.variants.push_back(read_what_if(variant));
}

// All combinations, the last axis varying fastest; variants outermost.
void expand(const Part& part, std::vector<WhatIf>& points) {
  const std::vector<WhatIf> variants =
      part.variants.empty() ? std::vector<WhatIf>{{}} : part.variants;
  for (const WhatIf& variant : variants) {
    std::vector<const Axis*> axes;
    for (const Axis& axis : part.grid)
      if (!variant.contains(axis.first)) axes.push_back(&axis);
    std::size_t count = 1;
    for (const Axis* axis : axes) {
      count *= axis->second.size();
      if (count + points.size() > max_points)
        throw Error(Exit::usage, fmt::format("the sweep has more than {} points", max_points));
    }
    for (std::size_t i = 0; i < count; ++i) {
      WhatIf point = part.base;
      std::size_t rest = i;
      for (std::size_t a = axes.size(); a-- > 0;) {
        point[axes[a]->first] = axes[a]->second[rest % axes[a]->second.size()];
        rest /= axes[a]->second.size();
      }
      for (const auto& [key, value] : variant) point[key] = value;
      points.push_back(std::move(point));
    }
  }
}

Axis parse_axis(std::string_view text, std::string_view flag) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    fail_input({"", 0, std::string(flag)}, fmt::format("'{}' is not KEY=VALUES", text));
  return {std::string(text.substr(0, equals)), {std::string(text.substr(equals + 1))}};
}

}  // namespace

std::string study_text(std::string_view name) {
  for (const EmbeddedFile& file : study_files())
    if (file.name == fmt::format("{}/sweep.toml", name)) return std::string(file.text);
  return {};
}

std::vector<Axis> axes_of(const std::vector<WhatIf>& points) {
  struct Seen {
    std::set<std::string> known;
    std::vector<std::string> in_order;
    std::size_t points = 0;
  };
  std::map<std::string, Seen> keys;
  for (const WhatIf& point : points) {
    for (const auto& [key, value] : point) {
      Seen& seen = keys[key];
      ++seen.points;
      if (seen.known.insert(value).second) seen.in_order.push_back(value);
    }
  }
  std::vector<Axis> axes;
  for (auto& [key, seen] : keys)
    if (seen.in_order.size() > 1 || seen.points < points.size())
      axes.emplace_back(key, std::move(seen.in_order));
  return axes;
}

std::vector<std::string> expand_scan(std::string_view text, const Where& where) {
  const auto first = text.find(':');
  const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos || second + 1 >= text.size())
    fail_input(where, fmt::format("'{}' is not a scan", text), "low:high:xFACTOR or low:high:STEP");
  const Bound low = read_bound(text.substr(0, first), text, where);
  const Bound high = read_bound(text.substr(first + 1, second - first - 1), text, where);
  std::string_view step_text = text.substr(second + 1);
  const bool geometric = step_text.front() == 'x';
  if (geometric) step_text.remove_prefix(1);
  const Bound step = read_bound(step_text, text, where);
  if (low.unit != high.unit)
    fail_input(where, fmt::format("'{}' mixes the units '{}' and '{}'", text, low.unit, high.unit));
  // A factor has no unit; a step has that of the bounds, or leaves it out.
  if (!step.unit.empty() && (geometric || step.unit != low.unit))
    fail_input(where, fmt::format("'{}' has a step in '{}'", text, step.unit),
               geometric ? "a factor without unit" : fmt::format("a step in '{}'", low.unit));
  if (low.value > high.value ||
      (geometric ? !(step.value > 1) || !(low.value > 0) : !(step.value > 0)))
    fail_input(where, fmt::format("'{}' never gets from {} to {}", text, low.value, high.value));
  std::vector<std::string> values;
  for (std::size_t i = 0; values.size() < 100'000; ++i) {
    const double value = geometric ? low.value * std::pow(step.value, static_cast<double>(i))
                                   : low.value + step.value * static_cast<double>(i);
    if (value > high.value * (1 + 1e-12) + 1e-12) return values;
    // Whole numbers stay whole: 8, not 8.0.
    values.push_back(fmt::format("{:.12g}{}", value, low.unit));
  }
  fail_input(where, fmt::format("'{}' has more than 100000 values", text));
}

Axis parse_scan(std::string_view text) {
  Axis axis = parse_axis(text, "--scan");
  axis.second = expand_scan(axis.second.front(), {"", 0, "--scan " + axis.first});
  return axis;
}

Axis parse_list(std::string_view text) {
  Axis axis = parse_axis(text, "--list");
  const std::string list = std::move(axis.second.front());
  axis.second.clear();
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    axis.second.push_back(list.substr(begin, end - begin));
    if (axis.second.back().empty())
      fail_input({"", 0, "--list " + axis.first}, fmt::format("'{}' has an empty value", list));
    begin = end + 1;
  }
  return axis;
}

SweepPlan plan_sweep(std::string_view text, const std::string& file,
                     const std::vector<Axis>& axes) {
  const Table root = Table::parse(text, file);
  SweepPlan plan;
  plan.name = root.get_or<std::string>("name", "sweep");
  plan.description = root.get_or<std::string>("description", "");
  Part common;
  read_part(root, common);
  std::vector<Part> parts;
  for (const Table& table : root.tables("part")) {
    parts.push_back(common);
    read_part(table, parts.back());
  }
  if (parts.empty()) parts.push_back(common);
  root.finish();
  std::string hashed(text);
  for (const Axis& axis : axes) {
    if (const auto& known = what_if_keys();
        !axis.first.starts_with("cluster.") && !axis.first.starts_with("model.") &&
        std::find(known.begin(), known.end(), axis.first) == known.end())
      fail_unknown({"", 0, "--scan/--list"}, "key", axis.first, known);
    hashed += fmt::format("\n{}={}", axis.first, fmt::join(axis.second, ","));
    // Steps and samples say the length of the run in two ways: the flag's replaces the file's.
    const std::string other = axis.first == "steps"     ? "samples"
                              : axis.first == "samples" ? "steps"
                                                        : "";
    for (Part& part : parts) {
      std::erase_if(part.grid, [&](const Axis& of_file) { return of_file.first == other; });
      for (const std::string& key : {axis.first, other}) {
        part.base.erase(key);
        for (WhatIf& variant : part.variants) variant.erase(key);
      }
    }
  }
  for (const Axis& axis : axes)
    for (Part& part : parts) set_axis(part.grid, axis);
  for (const Part& part : parts) expand(part, plan.points);
  plan.text_hash = hash_of(hashed);
  return plan;
}

}  // namespace lambcast
