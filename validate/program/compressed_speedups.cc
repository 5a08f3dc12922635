#include "validate/program/compressed_speedups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/program/unseen_stacks.h"

namespace lambcast {
namespace {

struct Score {
  std::vector<double> off, width;  // |ln(forecast / measured)| and ln(high / low)
  int right = 0, inside = 0;

  void add(const CompressedSpeedup& one) {
    off.push_back(std::abs(std::log(one.forecast / one.measured)));
    width.push_back(std::log(one.high / one.low));
    right += one.has_right_sign();
    inside += one.inside();
  }
  std::string line(const std::string& name) const {
    return fmt::format(
        "{:<28} {:>4} {:>6.1f}% {:>6} {:>6} {:>6.2f}\n", name, off.size(),
        100 * std::expm1(validate::quantile(off, 0.5)), fmt::format("{}/{}", right, off.size()),
        fmt::format("{}/{}", inside, off.size()), std::exp(validate::quantile(width, 0.5)));
  }
};

std::vector<SourceFigure> all_rows(const UnseenStack& stack) {
  std::vector<SourceFigure> rows = stack.rows;
  rows.insert(rows.end(), stack.unstated_rows.begin(), stack.unstated_rows.end());
  return rows;
}

// Returns the ratio of two runs on one machine.
RatioInterval ratio_on_one_machine(const SourceResult& a, const SourceResult& b) {
  ErrorSources common = ErrorSources().set();
  if (a.of.what_if.at("framework") != b.of.what_if.at("framework"))
    for (std::size_t i = 0; i < error_sources; ++i)
      if (what_errs(i) == ErrorOf::passes) common.reset(i);
  return ratio_of(a.time, b.time, common);
}

double seconds_per_sample(const SourceResult& result) {
  return result.of.quantity == Quantity::samples_per_s ? 1 / result.of.measured
                                                       : result.of.measured;
}

}  // namespace

std::vector<CompressedSpeedup> compressed_speedups() {
  std::map<std::string, SourceResult> by_name;
  const std::vector<UnseenStack> stacks = unseen_stacks();
  for (const UnseenStack& stack : stacks)
    for (SourceResult& result : replay_figures(all_rows(stack))) {
      if (!result.ok()) throw Error(Exit::usage, result.of.name + ": " + result.status);
      by_name.emplace(result.of.name, std::move(result));
    }
  std::vector<CompressedSpeedup> speedups;
  for (const UnseenStack& stack : stacks)
    for (const auto& [run, plain] : stack.plain_runs) {
      const SourceResult &of = by_name.at(run), &against = by_name.at(plain);
      LAMBCAST_CHECK(of.of.quantity == against.of.quantity, "{} against {}", run, plain);
      const double measured = seconds_per_sample(against) / seconds_per_sample(of);
      const double forecast = measured * (1 + against.error) / (1 + of.error);
      const RatioInterval ratio = ratio_on_one_machine(against, of);
      speedups.push_back({stack.program, run, measured, forecast,
                          forecast * ratio.low / ratio.value, forecast * ratio.high / ratio.value});
    }
  return speedups;
}

std::string speedup_table(const std::vector<CompressedSpeedup>& speedups) {
  std::vector<std::pair<std::string, Score>> programs;
  Score all;
  for (const CompressedSpeedup& one : speedups) {
    auto known = std::ranges::find(programs, one.program, &std::pair<std::string, Score>::first);
    if (known == programs.end()) known = programs.insert(known, {one.program, {}});
    known->second.add(one);
    all.add(one);
  }
  std::string out = fmt::format("{:<28} {:>4} {:>7} {:>6} {:>6} {:>6}\n", "speed-ups by fewer bits",
                                "rows", "median", "sign", "inside", "width");
  for (const auto& [program, score] : programs) out += score.line(program);
  return out + all.line("all programs");
}

std::vector<CompressedSpeedup> speedups_in_view(const std::vector<ReplayResult>& results) {
  const std::string coded = "1-bit Adam", plain = "Adam";
  std::vector<CompressedSpeedup> speedups;
  for (const ReplayResult& of : results) {
    const std::size_t at = of.of.id.find(coded);
    if (at == std::string::npos) continue;
    const std::string name = std::string(of.of.id).replace(at, coded.size(), plain);
    const auto against = std::ranges::find_if(
        results, [&](const ReplayResult& other) { return other.of.id == name; });
    if (against == results.end() || against->of.quantity != "samples_per_s") continue;
    speedups.push_back({of.of.fitted || against->of.fitted ? "R" : "U", of.of.id,
                        of.of.measured / against->of.measured, of.forecast / against->forecast});
  }
  return speedups;
}

std::string each_speedup_table(const std::vector<CompressedSpeedup>& speedups) {
  std::string out = fmt::format("{:<28} {:>8} {:>8} {:>6} {:>5}\n", "speed-ups in view", "measured",
                                "forecast", "error", "grade");
  for (const CompressedSpeedup& one : speedups)
    out += fmt::format("{:<28} {:>7.2f}x {:>7.2f}x {:>+5.1f}% {:>5}\n", one.run, one.measured,
                       one.forecast, 100 * (one.forecast / one.measured - 1), one.program);
  return out;
}

}  // namespace lambcast
