#include "validate/program/measured_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "sim/base/error.h"
#include "sim/base/units.h"

namespace lambcast {
namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

double plain_number(std::string_view text, const Where& where) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size())
    fail_input(where, fmt::format("'{}' is not a number", text));
  return value;
}

// Takes "41%" or the share 0.41.
double per_cent(std::string_view text, const Where& where) {
  const bool is_share = !text.ends_with('%');
  const double number = plain_number(is_share ? text : text.substr(0, text.size() - 1), where);
  const double percent = is_share ? 100 * number : number;
  if (percent > 100)
    fail_input(where, fmt::format("mfu={} is {:g} % of the peak", text, percent),
               number <= 100 ? fmt::format("0 to 1, or 0% to 100%; try: mfu={:g}%", number)
                             : std::string("0 to 1, or 0% to 100%"));
  return percent;
}

double seconds(std::string_view text, const Where& where) {
  return parse_duration(text, where).s();
}

double gibibytes(std::string_view text, const Where& where) {
  return parse_bytes(text, where).value() / gib;
}

struct Metric {
  std::string_view name, example;
  Quantity quantity;
  double (*parse)(std::string_view text, const Where& where);
};

constexpr Metric metrics[] = {
    {"step_time", "step_time=5436ms", Quantity::step_time_s, seconds},
    {"samples_per_s", "samples_per_s=1200", Quantity::samples_per_s, plain_number},
    {"tokens_per_s", "tokens_per_s=250000", Quantity::tokens_per_s, plain_number},
    {"tokens_per_gpu_s", "tokens_per_gpu_s=3400", Quantity::tokens_per_gpu_s, plain_number},
    {"tflops_per_gpu", "tflops_per_gpu=140", Quantity::tflops_per_gpu, plain_number},
    {"mfu", "mfu=41%", Quantity::mfu_pct, per_cent},
    {"memory", "memory=71GiB", Quantity::memory_gib, gibibytes},
};

}  // namespace

std::vector<std::string> measured_step_names() {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.emplace_back(metric.name);
  return names;
}

SourceFigure measured_step(const std::string& text, const WhatIf& what_if) {
  const Where where{"", 0, "--measured"};
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const auto* metric = std::ranges::find(metrics, name, &Metric::name);
  if (metric == std::end(metrics)) fail_unknown(where, "metric", name, measured_step_names());
  if (equals == std::string::npos)
    fail_input(where, fmt::format("'{}' has no value", text), std::string(metric->example));
  SourceFigure figure;
  figure.source = "measured";
  figure.name = text;
  figure.quantity = metric->quantity;
  figure.measured = metric->parse(std::string_view(text).substr(equals + 1), where);
  if (!(figure.measured > 0))
    fail_input(where, fmt::format("'{}' is not above zero", text), std::string(metric->example));
  figure.what_if = what_if;
  return figure;
}

}  // namespace lambcast
