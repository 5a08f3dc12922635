#include "validate/replay/measured_quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/units.h"

namespace lambcast {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;
constexpr std::ptrdiff_t of_whole_runs = 2;  // the last quantities: days, run_time_s

double measured_number(std::string_view text, const Where& where) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    fail_input(where, fmt::format("'{}' is not a finite number", text));
  return value;
}

// Parses "41%" or the share 0.41 as a percentage.
double per_cent(std::string_view text, const Where& where) {
  const bool is_share = !text.ends_with('%');
  const double number = measured_number(is_share ? text : text.substr(0, text.size() - 1), where);
  const double percent = is_share ? 100 * number : number;
  if (percent > 100)
    fail_input(where, fmt::format("mfu={} is {:g} % of the peak", text, percent),
               number <= 100 ? fmt::format("0 to 1, or 0% to 100%; try: mfu={:g}%", number)
                             : std::string("0 to 1, or 0% to 100%"));
  return percent;
}

double measured_seconds(std::string_view text, const Where& where) {
  return parse_duration(text, where).s();
}

double measured_gibibytes(std::string_view text, const Where& where) {
  return parse_bytes(text, where).value() / gib;
}

std::vector<MeasuredQuantity> all_quantities() {
  std::vector<MeasuredQuantity> all{
      {"step_time", "step_time=5436ms", Quantity::step_time_s, measured_seconds},
      {"mfu", "mfu=41%", Quantity::mfu_pct, per_cent},
      {"memory", "memory=71GiB", Quantity::memory_gib, measured_gibibytes}};
  for (auto name = quantity_names().begin(); name != quantity_names().end() - of_whole_runs; ++name)
    all.push_back({*name, *name + "=1200", static_cast<Quantity>(name - quantity_names().begin()),
                   measured_number});
  return all;
}

}  // namespace

const std::vector<MeasuredQuantity>& measured_quantities() {
  static const std::vector<MeasuredQuantity> all = all_quantities();
  return all;
}

std::vector<std::string> measured_names() {
  std::vector<std::string> names;
  for (const MeasuredQuantity& of : measured_quantities()) names.push_back(of.name);
  return names;
}

double parse_measured(const MeasuredQuantity& of, std::string_view text, const Where& where) {
  const double value = of.parse(text, where);
  if (!(value > 0)) fail_input(where, fmt::format("'{}' must be above zero", text), of.example);
  return value;
}

SourceFigure measured_step(const std::string& text, const WhatIf& what_if) {
  const Where where{"", 0, "--measured"};
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto of = std::ranges::find(measured_quantities(), name, &MeasuredQuantity::name);
  if (of == measured_quantities().end()) fail_unknown(where, "metric", name, measured_names());
  if (equals == std::string::npos)
    fail_input(where, fmt::format("'{}' has no value", text), of->example);
  SourceFigure figure;
  figure.source = "measured";
  figure.name = text;
  figure.quantity = of->quantity;
  figure.measured = parse_measured(*of, std::string_view(text).substr(equals + 1), where);
  figure.what_if = what_if;
  return figure;
}

}  // namespace lambcast
