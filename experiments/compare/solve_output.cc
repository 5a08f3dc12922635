#include "experiments/compare/solve_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/sweep/common_length.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

// Number of values shown on either side of a pass of the target.
constexpr std::size_t around = 3;

std::string side(const Solution& solution, bool meets) {
  if (solution.metric->less_is_better) return meets ? "at most" : "more than";
  return meets ? "at least" : "less than";
}

std::string target_text(const Solution& solution) { return solution.metric->text(solution.target); }

// Returns the metric as text, or "just under" or "just over" the target if it rounds to the target.
std::string value_text(const Solution& solution, const SolvePoint& point) {
  const double value = point.metric.value, target = solution.target;
  const std::string text = solution.metric->text(value), wanted = target_text(solution);
  if (value == target || (text != wanted && std::abs(value - target) > 1e-4 * std::abs(target)))
    return text;
  return fmt::format("just {} {}", value < target ? "under" : "over", wanted);
}

std::string within_text(const Solution& solution) {
  if (!solution.within) return "";
  const auto& [low, high] = *solution.within;
  if (!low && !high) return "";
  if (low == high) return fmt::format(" All of the forecast's interval has it at {}.", *low);
  return fmt::format(" By the forecast's interval it may be from {} to {}.",
                     low.value_or("below the range"), high.value_or("above the range"));
}

std::string places_text(const Solution& solution) {
  std::string out;
  for (const std::size_t place : solution.passes)
    out += fmt::format("{}{} and {}", out.empty() ? "" : ", ", solution.points[place - 1].text,
                       solution.points[place].text);
  return out;
}

// Lists the turning points of the metric, unless the answer lists several passes already.
std::string turns_text(const Solution& solution) {
  constexpr std::size_t most = 4;
  if (solution.turns.empty() || solution.passes.size() > 1) return "";
  std::vector<std::string> places;
  for (const std::size_t turn : solution.turns)
    if (places.size() < most)
      places.push_back(fmt::format("{} ({})", solution.points[turn].text,
                                   solution.metric->text(solution.points[turn].metric.value)));
  if (solution.turns.size() > most)
    places.push_back(fmt::format("{} more", solution.turns.size() - most));
  return fmt::format(
      " It is not monotone: it turns at {} {}, and may pass {} between the values forecast too.",
      solution.key, fmt::join(places, ", "), target_text(solution));
}

// Returns the number of values whose interval reaches the other side of the target, if all values
// themselves are on one side.
std::string open_text(const Solution& solution) {
  const auto open = std::ranges::count_if(solution.points, [&](const SolvePoint& point) {
    return point.metric.low &&
           *point.metric.low<solution.target&& * point.metric.high> solution.target;
  });
  if (open == 0) return "";
  const auto all = static_cast<std::ptrdiff_t>(solution.points.size());
  return fmt::format(" The forecast's interval leaves that open at {} of the {} values.",
                     open == all ? "every one" : std::to_string(open), all);
}

std::string sentence_of(const Solution& solution) {
  const Metric& metric = *solution.metric;
  const std::vector<SolvePoint>& points = solution.points;
  const auto [least, most] = std::ranges::minmax_element(
      points, {}, [](const SolvePoint& point) { return point.metric.value; });
  if (solution.is_flat())
    return fmt::format("{} moves nothing here: {} is {} from {} to {}, {} {}.", solution.key,
                       metric.name, metric.text(least->metric.value), points.front().text,
                       points.back().text, side(solution, points.front().meets),
                       target_text(solution));
  const std::string range = fmt::format(
      "from {} {} to {} ({} to {})", solution.key, points.front().text, points.back().text,
      metric.text(least->metric.value), metric.text(most->metric.value));
  switch (solution.kind()) {
    case Solution::Kind::always:
      return fmt::format("{} is {} {} everywhere {}.{}", metric.name, side(solution, true),
                         target_text(solution), range, open_text(solution));
    case Solution::Kind::never:
      return fmt::format("{} of {} {} is not reached anywhere {}.{}", metric.name,
                         side(solution, true), target_text(solution), range, open_text(solution));
    case Solution::Kind::not_monotone:
      return fmt::format("{} is not monotone in {}: it passes {} {} times, between {}.",
                         metric.name, solution.key, target_text(solution), solution.passes.size(),
                         places_text(solution));
    case Solution::Kind::solved:
      break;
  }
  const SolvePoint& before = points[solution.passes.front() - 1];
  const SolvePoint& after = points[solution.passes.front()];
  const SolvePoint& meets = before.meets ? before : after;
  return fmt::format(
      "{} is {} {} up to {} {} ({}), and {} it from {} on ({}).{}{}", metric.name,
      side(solution, before.meets), target_text(solution), solution.key, before.text,
      value_text(solution, before), side(solution, after.meets), after.text,
      value_text(solution, after), within_text(solution),
      meets.fits ? "" : fmt::format(" At {} it does not fit in memory.", meets.text));
}

std::string answer_of(const Solution& solution) {
  std::string text = sentence_of(solution) + turns_text(solution);
  if (!solution.limits.empty())
    text += fmt::format(" The limit: {}.", fmt::join(solution.limits, "; "));
  if (solution.assumed_steps)
    text += fmt::format(" {}.", common_length_text(*solution.assumed_steps));
  return text;
}

// Returns the points near the passes of the target, or a few over the whole range if there is none.
std::vector<std::size_t> shown(const Solution& solution) {
  std::vector<std::size_t> all;
  const std::size_t count = solution.points.size();
  if (solution.passes.empty())
    for (std::size_t i = 0; i < count; i += std::max<std::size_t>(1, count / 6)) all.push_back(i);
  for (const std::size_t place : solution.passes)
    for (std::size_t i = place - std::min(place, around); i < std::min(count, place + around); ++i)
      if (all.empty() || all.back() < i) all.push_back(i);
  return all;
}

}  // namespace

std::string solution_table(const Solution& solution) {
  const Metric& metric = *solution.metric;
  std::size_t width = solution.key.size();
  for (const std::size_t i : shown(solution))
    width = std::max(width, solution.points[i].text.size());
  std::string out = answer_of(solution) + "\n";
  out += fmt::format("\n{:>{}} {:>14}  {:<24} {}\n", solution.key, width, metric.name, "within",
                     fmt::format("{} {}", side(solution, true), target_text(solution)));
  for (const std::size_t i : shown(solution)) {
    const SolvePoint& point = solution.points[i];
    out += fmt::format("{:>{}} {:>14}  {:<24} {}{}\n", point.text, width,
                       metric.cell(point.metric.value),
                       point.metric.low ? fmt::format("{} to {}", metric.cell(*point.metric.low),
                                                      metric.cell(*point.metric.high))
                                        : "",
                       point.meets ? "yes" : "no", point.fits ? "" : ", does not fit in memory");
  }
  out += fmt::format("\n{}: {}. {} values were forecast", metric.name, metric.help,
                     solution.points.size());
  if (solution.cannot_run > 0)
    out += fmt::format("; {} cannot run, as: {}", solution.cannot_run, solution.why_not);
  return out + "\n";
}

std::string solution_json(const Solution& solution) {
  constexpr const char* kinds[] = {"solved", "always", "never", "not_monotone"};
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"answer", answer_of(solution)},
            {"kind", kinds[static_cast<std::size_t>(solution.kind())]},
            {"key", solution.key},
            {"metric", std::string(solution.metric->name)},
            {"unit", std::string(solution.metric->unit)},
            {"target", solution.target},
            {"brackets", Json::array()},
            {"points", Json::array()},
            {"cannot_run", solution.cannot_run},
            {"turns", Json::array()}};
  const auto point_json = [](const SolvePoint& point) {
    return Json{{"value", point.x},
                {"text", point.text},
                {"metric", point.metric.value},
                {"metric_low", number_or_null(point.metric.low)},
                {"metric_high", number_or_null(point.metric.high)},
                {"meets_target", point.meets},
                {"fits", point.fits}};
  };
  for (const std::size_t place : solution.passes)
    json["brackets"].push_back({{"below", point_json(solution.points[place - 1])},
                                {"above", point_json(solution.points[place])}});
  for (const std::size_t turn : solution.turns)
    json["turns"].push_back(point_json(solution.points[turn]));
  for (const SolvePoint& point : solution.points) json["points"].push_back(point_json(point));
  return json_lines(json);
}

std::string solution_csv(const Solution& solution) {
  std::string out = csv::row({"key", "value", "metric", "metric_value", "metric_low", "metric_high",
                              "meets_target", "fits"}) +
                    "\n";
  const auto number = [](const std::optional<double>& value) {
    return value ? csv::number(*value) : std::string();
  };
  for (const SolvePoint& point : solution.points)
    out += csv::row({solution.key, csv::number(point.x), std::string(solution.metric->name),
                     csv::number(point.metric.value), number(point.metric.low),
                     number(point.metric.high), point.meets ? "true" : "false",
                     point.fits ? "true" : "false"}) +
           "\n";
  return out;
}

}  // namespace lambcast
