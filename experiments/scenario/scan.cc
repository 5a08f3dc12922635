#include "experiments/scenario/scan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace lambcast {
namespace {

struct Bound {
  double value = 0;
  std::string unit;
};

Bound read_bound(std::string_view text, std::string_view scan, const Where& where) {
  Bound bound;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), bound.value);
  if (status != std::errc{} || !std::isfinite(bound.value))
    fail_input(where, fmt::format("'{}' is not a scan", scan),
               "FROM..TO, low:high:xFACTOR or low:high:STEP");
  bound.unit = std::string(end, text.data() + text.size());
  return bound;
}

// Expands a scan such as "8..256".
std::vector<std::string> doubled(std::string_view text, std::size_t dots, const Where& where) {
  const Bound low = read_bound(text.substr(0, dots), text, where);
  const Bound high = read_bound(text.substr(dots + 2), text, where);
  if (low.unit != high.unit && !low.unit.empty())
    fail_input(where, fmt::format("'{}' mixes the units '{}' and '{}'", text, low.unit, high.unit));
  if (!(low.value > 0) || low.value > high.value)
    fail_input(where, fmt::format("'{}' does not lead from {} to {}", text, low.value, high.value),
               "FROM..TO, both above zero");
  std::vector<std::string> values;
  for (double value = low.value; value < high.value * (1 - 1e-12); value *= 2)
    values.push_back(fmt::format("{:.12g}{}", value, high.unit));
  values.push_back(fmt::format("{:.12g}{}", high.value, high.unit));
  return values;
}

Axis parse_axis(std::string_view text, std::string_view flag) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size())
    fail_input({"", 0, std::string(flag)}, fmt::format("'{}' is not KEY=VALUES", text),
               "such as gpus=8,16");
  return {std::string(text.substr(0, equals)), {std::string(text.substr(equals + 1))}};
}

}  // namespace

void refuse_twice(const std::vector<std::string>& values, const Where& where) {
  std::unordered_set<std::string> met;
  for (std::string value : values) {
    std::erase(value, ' ');
    if (!met.insert(value).second) fail_input(where, fmt::format("'{}' is listed twice", value));
  }
}

bool is_scan(std::string_view text) {
  if (std::ranges::count(text, ':') == 2) return true;
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  const auto dots = text.find("..");
  return dots != std::string_view::npos && digit(0) && digit(dots + 2);
}

std::vector<std::string> expand_scan(std::string_view text, const Where& where) {
  if (const auto dots = text.find("..");
      dots != std::string_view::npos && text.find(':') == std::string_view::npos)
    return doubled(text, dots, where);
  const auto first = text.find(':');
  const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos || second + 1 >= text.size())
    fail_input(where, fmt::format("'{}' is not a scan", text),
               "FROM..TO, low:high:xFACTOR or low:high:STEP");
  const Bound low = read_bound(text.substr(0, first), text, where);
  const Bound high = read_bound(text.substr(first + 1, second - first - 1), text, where);
  std::string_view step_text = text.substr(second + 1);
  const bool geometric = step_text.front() == 'x';
  if (geometric) step_text.remove_prefix(1);
  const Bound step = read_bound(step_text, text, where);
  if (low.unit != high.unit)
    fail_input(where, fmt::format("'{}' mixes the units '{}' and '{}'", text, low.unit, high.unit));
  // A factor has no unit. A step has the unit of the bounds, or none.
  if (!step.unit.empty() && (geometric || step.unit != low.unit))
    fail_input(where, fmt::format("'{}': the step has the unit '{}'", text, step.unit),
               geometric ? "a factor without unit" : fmt::format("a step in '{}'", low.unit));
  if (low.value > high.value ||
      (geometric ? !(step.value > 1) || !(low.value > 0) : !(step.value > 0)))
    fail_input(where, fmt::format("'{}' does not lead from {} to {}", text, low.value, high.value));
  std::vector<std::string> values;
  for (std::size_t i = 0; values.size() < 100'000; ++i) {
    const double value = geometric ? low.value * std::pow(step.value, static_cast<double>(i))
                                   : low.value + step.value * static_cast<double>(i);
    if (value > high.value * (1 + 1e-12) + 1e-12) return values;
    // Whole numbers are written without decimals: 8, not 8.0.
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
  refuse_twice(axis.second, {"", 0, "--list " + axis.first});
  return axis;
}

}  // namespace lambcast
