#include "experiments/compare/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "experiments/compare/solve_variable.h"
#include "experiments/output/flat_key.h"
#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/run_length.h"
#include "experiments/sweep/common_length.h"
#include "experiments/verdict/turns.h"

namespace lambcast {
namespace {

constexpr double least_ratio = 1.001;     // ratio of two values that count as different
constexpr int grid = 48;                  // number of values forecast over the range
constexpr double whole_ratio = 1.189207;  // ratio of neighbouring whole numbers: four per doubling
constexpr int probes = 3;                 // further values between two that enclose the target
// Most values tried to find one that runs between two whole numbers.
constexpr int tries = 256;

using IntervalEnd = std::optional<double> MetricValue::*;

class RootSearch {
 public:
  RootSearch(Variable variable, const Metric& metric, double target)
      : variable_(std::move(variable)), metric_(metric), target_(target) {}

  // Evaluates values spaced evenly in logarithms over the range.
  void spread() {
    for (const double x : variable_.whole ? whole_values() : values())
      if (x >= variable_.low && x <= variable_.high) evaluate(x);
  }

  // Returns pairs of neighbouring values that run, between which the metric (or an end of its
  // interval) passes the target.
  std::vector<std::pair<double, double>> passes(IntervalEnd end) {
    for (const auto& [low, high] : places_between(end)) probe(low, high);
    std::vector<std::pair<double, double>> places = places_between(end);
    for (auto& [low, high] : places) narrow(low, high, end);
    return places;
  }

  const std::map<double, SolvePoint>& found() const { return found_; }
  std::size_t refused() const { return refused_.size(); }
  const std::string& why_not() const { return why_not_; }

 private:
  std::set<double> values() const {
    std::set<double> all;
    for (int i = 0; i <= grid; ++i)
      all.insert(variable_.low *
                 std::pow(variable_.high / variable_.low, static_cast<double>(i) / grid));
    all.insert(variable_.high);
    return all;
  }

  // Returns the whole numbers to try, including powers of two, which divide batch sizes more often.
  std::set<double> whole_values() const {
    std::set<double> all{variable_.low, variable_.high};
    for (double x = 1; x <= variable_.high; x = std::max(x + 1, std::round(x * whole_ratio)))
      all.insert(x * variable_.unit);
    for (double x = 1; x <= variable_.high; x *= 2) all.insert(x * variable_.unit);
    return all;
  }

  // Returns pairs of neighbouring values between which the metric passes the target.
  std::vector<std::pair<double, double>> places_between(IntervalEnd end) const {
    std::vector<std::pair<double, double>> places;
    for (auto after = found_.begin(); after != found_.end(); ++after)
      if (after != found_.begin() &&
          meets(std::prev(after)->second, end) != meets(after->second, end))
        places.emplace_back(std::prev(after)->first, after->first);
    return places;
  }

  void probe(double low, double high) {
    for (int i = 1; i <= probes; ++i) {
      const double share = static_cast<double>(i) / (probes + 1);
      const double unit = variable_.unit;
      const double x = variable_.whole ? std::round((low + (high - low) * share) / unit) * unit
                                       : low * std::pow(high / low, share);
      if (x > low && x < high) evaluate(x);
    }
  }

  bool meets(const SolvePoint& point, IntervalEnd end) const {
    const double value = end == nullptr ? point.metric.value : (point.metric.*end).value();
    return metric_.less_is_better ? value <= target_ : value >= target_;
  }

  // Returns the forecast at x, or null if x cannot run.
  const SolvePoint* evaluate(double x) {
    if (const auto known = found_.find(x); known != found_.end()) return &known->second;
    if (refused_.contains(x)) return nullptr;
    try {
      const TrainingPlan training = variable_.at(x);
      CollectiveCosts costs;
      const Forecast of_x = forecast(training, costs);
      const auto value = metric_.of(training, of_x);
      if (!value)
        throw InvalidValue(
            "--for", fmt::format("--for {}: the run has none ({})", metric_.name, metric_.help));
      SolvePoint point{x, variable_.words(x), *value, false, of_x.memory.fits};
      point.meets = meets(point, nullptr);
      return &found_.emplace(x, std::move(point)).first->second;
    } catch (const InvalidValue& error) {
      const bool below = error.key().ends_with('.') && variable_.key.starts_with(error.key());
      if (error.key() != variable_.key && !below) throw;  // another key is invalid
      refuse(x, error.what());
    } catch (const Error& error) {
      if (error.code() != Exit::usage) throw;
      refuse(x, error.what());
    }
    return nullptr;
  }

  void refuse(double x, const std::string& why) {
    refused_.insert(x);
    if (why_not_.empty()) why_not_ = why;
  }

  void narrow(double& low, double& high, IntervalEnd end) {
    const bool low_meets = meets(found_.at(low), end);
    while (const SolvePoint* middle = between(low, high))
      (meets(*middle, end) == low_meets ? low : high) = middle->x;
  }

  // Returns a value between the two that runs, as near to the middle as possible; null if the two
  // are close enough.
  const SolvePoint* between(double low, double high) {
    if (!variable_.whole)
      return high / low > least_ratio ? evaluate(std::sqrt(low * high)) : nullptr;
    const double unit = variable_.unit, middle = std::floor((low + high) / 2 / unit) * unit;
    for (int i = 0; i < tries; ++i) {
      // Offsets from the middle: 0, 1, -1, 2, -2, ... units.
      const double x = middle + unit * ((i + 1) / 2) * (i % 2 == 1 ? 1 : -1);
      if (x <= low || x >= high) continue;
      if (const SolvePoint* point = evaluate(x)) return point;
    }
    return nullptr;
  }

  Variable variable_;
  const Metric& metric_;
  double target_;
  std::map<double, SolvePoint> found_;
  std::set<double> refused_;
  std::string why_not_;
};

// Names what limits the metric: the limits at the largest value of the key, and the composition of
// the best step.
std::vector<std::string> limits_of(const Solution& solution,
                                   const std::function<TrainingPlan(double)>& at) {
  const SolvePoint& best = solution.best();
  std::vector<std::string> limits = limits_of_key(solution.key, at(solution.points.back().x));
  if (solution.kind() == Solution::Kind::always && !solution.is_flat()) return limits;
  const std::string part = largest_part_text(at(best.x));
  if (!solution.is_flat())
    limits.push_back(fmt::format("at {} {}", best.text, part));
  else if (limits.empty())
    limits.push_back(part);
  return limits;
}

// Returns the value at which an end of the interval passes the target, if it does so exactly once.
std::optional<double> place_of(RootSearch& search, IntervalEnd end) {
  const auto places = search.passes(end);
  return places.size() == 1 ? std::optional(places.front().first) : std::nullopt;
}

}  // namespace

Solution::Kind Solution::kind() const {
  if (passes.size() > 1) return Kind::not_monotone;
  if (passes.size() == 1) return Kind::solved;
  return points.front().meets ? Kind::always : Kind::never;
}

bool Solution::is_flat() const {
  std::vector<double> values;
  for (const SolvePoint& point : points) values.push_back(point.metric.value);
  return points.size() > 1 && lambcast::is_flat(values);
}

const SolvePoint& Solution::best() const {
  const auto [least, most] = std::ranges::minmax_element(
      points, {}, [](const SolvePoint& point) { return point.metric.value; });
  return metric->less_is_better ? *least : *most;
}

std::pair<std::string, std::string> parse_wanted(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    fail_input({"", 0, "--for"}, fmt::format("'{}' is not METRIC=VALUE", text),
               "efficiency=90%, speedup=1.2, run_time=48h, cost=1000");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Solution solve(const SolveQuestion& question, Catalog& catalog) {
  Solution solution;
  solution.key = question.key;
  solution.metric = &find_metric(question.metric, {"", 0, "--for"});
  solution.target = solution.metric->parse(question.target, {"", 0, "--for " + question.metric});
  // All values use one run length: that of the base question.
  WhatIf asked = question.what_if;
  if (!is_length(question.key)) solution.assumed_steps = assumed_length(asked, catalog);
  // The assumed length depends on the freeze step, which is the unknown here.
  if (solution.assumed_steps && question.key == "freeze_step" &&
      !question.what_if.contains("freeze_step") && !question.what_if.contains("config"))
    fail_input(flag("steps"), "is missing: which freeze_step is right depends on the run's length",
               "--steps N, --samples N or --tokens N, such as --steps 5993");
  if (solution.assumed_steps) asked["steps"] = fmt::format("{}", *solution.assumed_steps);
  Variable variable = variable_of(question.key, asked, question.low, question.high, catalog);
  const auto words = variable.words;
  const auto at = variable.at;
  RootSearch search(std::move(variable), *solution.metric, solution.target);
  search.spread();
  if (search.found().empty())
    throw Error(Exit::usage,
                fmt::format("no value of {} runs: {}", question.key, search.why_not()));
  const auto passes = search.passes(nullptr);
  if (passes.size() == 1 && search.found().begin()->second.metric.low) {
    const auto one = place_of(search, &MetricValue::low);
    const auto other = place_of(search, &MetricValue::high);
    // The metric decides which end of the interval passes the target at the smaller value, so the
    // two values are sorted.
    const double here = passes.front().first;
    const auto in_order = [&](const std::optional<double>& x) { return x ? *x : here; };
    const bool swapped = in_order(one) > here || in_order(other) < here;
    const auto text = [&](const std::optional<double>& x) {
      return x ? std::optional(words(*x)) : std::nullopt;
    };
    solution.within =
        swapped ? std::pair(text(other), text(one)) : std::pair(text(one), text(other));
  }
  for (const auto& [x, point] : search.found()) {
    const bool passed =
        std::ranges::any_of(passes, [&, x = x](const auto& place) { return place.second == x; });
    if (passed) solution.passes.push_back(solution.points.size());
    solution.points.push_back(point);
  }
  std::vector<double> values;
  for (const SolvePoint& point : solution.points) values.push_back(point.metric.value);
  solution.turns = turns_of(values);
  if (passes.empty()) solution.limits = limits_of(solution, at);
  solution.cannot_run = search.refused();
  solution.why_not = search.why_not();
  return solution;
}

}  // namespace lambcast
