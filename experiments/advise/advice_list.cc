#include "experiments/advise/advice_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/advise/advice_output.h"
#include "experiments/output/cell.h"
#include "experiments/output/flat_key.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/measure_first.h"
#include "experiments/sweep/common_length.h"
#include "experiments/sweep/sweep_check.h"
#include "experiments/sweep/sweep_plan.h"
#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

// Consecutive points with one verdict.
struct Stretch {
  std::string verdict;
  std::size_t first = 0, last = 0;
};

std::string verdict_of(const AdvicePoint& point, bool fused) {
  if (!point.advice) return "cannot run";
  const Answer& answer = fused && point.advice->fused ? *point.advice->fused : point.advice->answer;
  return std::string(words_of(answer.verdict()));
}

WarmUp warm_up_at(const AdvicePoint& point) {
  if (!point.advice) return WarmUp::usual;
  const TrainingPlan& training = point.advice->answer.scenario.training;
  const auto freeze_step = freeze_step_of(training.recipe);
  return freeze_step ? warm_up_of(static_cast<double>(*freeze_step - training.steps_done),
                                  static_cast<double>(training.steps))
                     : WarmUp::usual;
}

std::size_t points_with(const AdviceList& list, WarmUp warm_up) {
  return static_cast<std::size_t>(std::ranges::count(
      list.points, warm_up, [](const auto& point) { return warm_up_at(point); }));
}

// Returns whether the point counts. Points with an unusual share of warm-up do not count, unless
// all points are unusual.
bool counts(const AdviceList& list, const AdvicePoint& point) {
  return warm_up_at(point) == WarmUp::usual || points_with(list, WarmUp::usual) == 0;
}

// Returns the verdict of a point, or why the point does not count.
std::string verdict_cell(const AdviceList& list, const AdvicePoint& point) {
  if (counts(list, point)) return verdict_of(point, false);
  const WarmUp warm_up = warm_up_at(point);
  return warm_up == WarmUp::none    ? "no warm-up"
         : warm_up == WarmUp::early ? "freezes early"
                                    : "long warm-up";
}

std::string stretches_of(const AdviceList& list, bool fused) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < list.points.size(); ++i) {
    if (!counts(list, list.points[i])) continue;
    const std::string verdict = verdict_of(list.points[i], fused);
    if (stretches.empty() || stretches.back().verdict != verdict)
      stretches.push_back({verdict, i, i});
    stretches.back().last = i;
  }
  std::string out;
  for (const Stretch& stretch : stretches) {
    const std::string first = fmt::format("{}", fmt::join(list.points[stretch.first].varied, ", "));
    const std::string last = fmt::format("{}", fmt::join(list.points[stretch.last].varied, ", "));
    out += fmt::format(
        "{}{} {}", out.empty() ? "" : "; ", stretch.verdict,
        stretch.first == stretch.last ? "at " + first : fmt::format("from {} to {}", first, last));
  }
  return out;
}

// Returns whether points that differ only in this axis always have the same answer. False if no two
// points differ only in it.
bool moves_nothing(const AdviceList& list, std::size_t axis) {
  std::map<std::vector<std::string>, const Advice*> first;
  bool compared = false;
  for (const AdvicePoint& point : list.points) {
    if (!point.advice) return false;
    std::vector<std::string> others = point.varied;
    others[axis].clear();
    const auto [place, fresh] = first.try_emplace(others, &*point.advice);
    if (fresh) continue;
    compared = true;
    const Advice &one = *place->second, &other = *point.advice;
    if (!is_flat(std::array{one.baseline_time_s, other.baseline_time_s}) ||
        !is_flat(std::array{one.answer.merit().value, other.answer.merit().value}))
      return false;
  }
  return compared;
}

// Lists the varied keys without effect, each with the limit that holds in its place.
std::string keys_without_effect(const AdviceList& list) {
  std::string out;
  for (std::size_t axis = 0; axis < list.axes.size(); ++axis)
    if (moves_nothing(list, axis))
      out += flat_key_text(list.axes[axis].first,
                           list.points.front().advice->answer.scenario.training) +
             "\n";
  return out;
}

// Returns a line with the error finding of the first point that does not fit in memory; empty if
// all points fit.
std::string misfit_text(const AdviceList& list) {
  for (const AdvicePoint& point : list.points) {
    if (!point.advice || point.advice->answer.verdict() != Verdict::does_not_fit) continue;
    const Answer& answer = point.advice->answer;
    for (const Finding& finding : judge(answer.scenario.training, answer.forecast()))
      if (finding.severity == Severity::error)
        return fmt::format("At {}: {}.\n", fmt::join(point.varied, ", "), finding.message);
  }
  return "";
}

std::string answer_of(const AdviceList& list) {
  std::string keys;
  for (const auto& [key, values] : list.axes) keys += (keys.empty() ? "" : ", ") + key;
  const auto first = std::ranges::find_if(
      list.points, [](const AdvicePoint& point) { return point.advice.has_value(); });
  if (first == list.points.end())
    return fmt::format("None of {} points runs: {}\n", list.points.size(),
                       list.points.front().refused);
  const std::string length =
      list.common_steps ? ", in runs" + assumed_run_text(list.common_steps) : "";
  std::string out = fmt::format("Does {} pay, by {}{}? {}.\n", first->advice->optimizer, keys,
                                length, stretches_of(list, false));
  if (first->advice->fused)
    out += fmt::format("With the fused kernels that ship here: {}.\n", stretches_of(list, true));
  const bool all_unusual = points_with(list, WarmUp::usual) == 0;
  const Answer& answer = first->advice->answer;
  if (answer.verdict() == Verdict::not_judged)
    out += fmt::format("At {}: {}.\n", fmt::join(first->varied, ", "), answer.why_not_judged);
  else if (all_unusual)
    out +=
        fmt::format("No point warms up for {:.0f} to {:.0f} % of its steps, so all are judged.\n",
                    100 * shortest_warmup_share, 100 * longest_warmup_share);
  const std::string rest =
      all_unusual
          ? ""
          : left_out_text({points_with(list, WarmUp::none), points_with(list, WarmUp::early),
                           points_with(list, WarmUp::most_of_the_run)});
  if (!rest.empty()) out += fmt::format("Left out of these: {}.\n", rest);
  out += misfit_text(list);
  return out + keys_without_effect(list);
}

// Returns the measurement that would settle most of the points that are not certain.
std::string measure_first(const AdviceList& list) {
  std::map<std::size_t, std::vector<const TrainingPlan*>> votes;
  for (const AdvicePoint& point : list.points) {
    if (!point.advice || !counts(list, point)) continue;
    const Answer& answer = point.advice->answer;
    if (answer.verdict() == Verdict::cannot_tell && !answer.merit().shares.empty())
      votes[answer.merit().shares.front().source].push_back(&answer.scenario.training);
  }
  const auto most =
      std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second.size(); });
  if (most == votes.end()) return "";
  const std::string measurement = measurement_for(most->first, most->second);
  return measurement.empty() ? "" : fmt::format("To be certain, measure first: {}.\n", measurement);
}

std::string speedup_text(const Answer& answer) {
  return fmt::format("{:.2f}x {:.2f}-{:.2f}", answer.merit().value, answer.merit().low,
                     answer.merit().high);
}

std::string break_even_text(const std::optional<BreakEven>& at) {
  if (!at) return "";
  return at->at ? to_text_bits(*at->at) : std::string("none");
}

// The compressed run of each point and its cost, with DeepSpeed's kernels or those of the question.
std::string run_table(const AdviceList& list, const std::vector<std::size_t>& widths) {
  std::string out = "\n";
  for (std::size_t a = 0; a < list.axes.size(); ++a)
    out += fmt::format("{:<{}} ", list.axes[a].first, widths[a]);
  out += fmt::format("{:>9} {:>20} {:>8} {:>16}\n", "run", "within", "USD", "within");
  for (const AdvicePoint& point : list.points) {
    if (!point.advice) continue;
    for (std::size_t a = 0; a < list.axes.size(); ++a)
      out += fmt::format("{:<{}} ", point.varied[a], widths[a]);
    const RunForecast& run = point.advice->answer.forecast().run;
    out += fmt::format("{:>9} {:>20}", time_cell(run.time_s),
                       time_range(run.time_s, run.time_low_s, run.time_high_s));
    out += run.cost_usd
               ? fmt::format(" {:>8} {:>16}\n", usd_cell(*run.cost_usd),
                             fmt::format("{} to {}", usd_cell(*run.cost_at(run.time_low_s)),
                                         usd_cell(*run.cost_at(run.time_high_s))))
               : fmt::format(" {:>8}\n", "-");
  }
  return out;
}

}  // namespace

AdviceList advise_all(const WhatIf& what_if, const std::vector<Axis>& axes, Catalog& catalog) {
  const SweepPlan asked = plan_sweep_of_flags(what_if, axes);
  check_values(asked.points, catalog);
  const SweepPlan plan = with_common_length(asked, catalog);
  AdviceList list{axes, {}, plan.common_steps};
  for (const WhatIf& point : plan.points) {
    AdvicePoint of;
    for (const auto& [key, values] : axes) of.varied.push_back(point.at(key));
    try {
      of.advice = advise(point, catalog);
    } catch (const Error& error) {
      if (error.code() != Exit::usage) throw;
      of.refused = error.what();
    }
    list.points.push_back(std::move(of));
  }
  return list;
}

std::string advice_list_text(const AdviceList& list) {
  std::string out = answer_of(list) + measure_first(list) + "\n";
  std::vector<std::size_t> widths;
  for (std::size_t a = 0; a < list.axes.size(); ++a) {
    std::size_t width = list.axes[a].first.size();
    for (const AdvicePoint& point : list.points) width = std::max(width, point.varied[a].size());
    widths.push_back(width);
    out += fmt::format("{:<{}} ", list.axes[a].first, width);
  }
  out += fmt::format("{:<13} {:<16} {:<16} {}\n", "verdict", "speed-up", "fused kernels",
                     "break-even");
  for (const AdvicePoint& point : list.points) {
    for (std::size_t a = 0; a < list.axes.size(); ++a)
      out += fmt::format("{:<{}} ", point.varied[a], widths[a]);
    if (!point.advice) {
      out += "cannot run: " + point.refused + "\n";
      continue;
    }
    const Answer& answer = point.advice->answer;
    out += fmt::format("{:<13} {:<16} {:<16} {}\n", verdict_cell(list, point), speedup_text(answer),
                       point.advice->fused ? speedup_text(*point.advice->fused) : "-",
                       break_even_text(answer.break_even));
  }
  return out + run_table(list, widths) +
         "\nspeed-up: of the run, and its interval. break-even: NIC bandwidth above which it does "
         "not pay (none: there is no such).\n";
}

std::string advice_list_json(const AdviceList& list) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"answer", answer_of(list)},
            {"points", Json::array()}};
  for (const AdvicePoint& point : list.points) {
    Json one{{"varied", Json::object()}};
    for (std::size_t a = 0; a < list.axes.size(); ++a)
      one["varied"][list.axes[a].first] = point.varied[a];
    one["status"] = point.advice ? "ok" : "infeasible: " + point.refused;
    one["advice"] = point.advice ? parse_json(advice_json(*point.advice)) : Json(nullptr);
    json["points"].push_back(std::move(one));
  }
  return json_lines(json);
}

std::string advice_list_csv(const AdviceList& list) {
  std::vector<std::string> header;
  for (const auto& [key, values] : list.axes) header.push_back(key);
  for (const char* column : {"kernels", "verdict", "speedup", "speedup_low", "speedup_high",
                             "backend", "break_even_Gbps", "measure_first", "status"})
    header.emplace_back(column);
  const std::size_t status = header.size() - 1;
  for (const char* column :
       {"run_time_s", "run_time_low_s", "run_time_high_s", "cost_usd", "verdict_words"})
    header.emplace_back(column);
  std::string out = csv::row(header) + "\n";
  const auto add = [&](const AdvicePoint& point, const Answer& answer) {
    std::vector<std::string> row = point.varied;
    const RatioInterval& speedup = answer.merit();
    row.insert(row.end(), {std::string(name_of(answer.scenario.training.kernels)),
                           std::string(name_of(answer.verdict())), csv::number(speedup.value),
                           csv::number(speedup.low), csv::number(speedup.high),
                           answer.backends.front().backend,
                           answer.break_even && answer.break_even->at
                               ? csv::number(answer.break_even->at->value() * 8e-9)
                               : "",
                           speedup.shares.empty() ? ""
                                                  : measurement_for(speedup.shares.front().source,
                                                                    answer.scenario.training),
                           "ok"});
    const RunForecast& run = answer.forecast().run;
    row.insert(
        row.end(),
        {csv::number(run.time_s), csv::number(run.time_low_s), csv::number(run.time_high_s),
         run.cost_usd ? csv::number(*run.cost_usd) : "", std::string(words_of(answer.verdict()))});
    out += csv::row(row) + "\n";
  };
  for (const AdvicePoint& point : list.points) {
    if (point.advice) {
      add(point, point.advice->answer);
      if (point.advice->fused) add(point, *point.advice->fused);
      continue;
    }
    std::vector<std::string> row = point.varied;
    row.resize(header.size());
    row[status] = "infeasible: " + point.refused;
    out += csv::row(row) + "\n";
  }
  return out;
}

}  // namespace lambcast
