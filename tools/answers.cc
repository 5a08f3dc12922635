#include "tools/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>
#include <tuple>
#include <utility>

#include "experiments/advise/advice_list.h"
#include "experiments/advise/advice_output.h"
#include "experiments/compare/comparison_output.h"
#include "experiments/compare/folder_comparison.h"
#include "experiments/compare/sensitivity_output.h"
#include "experiments/compare/solve_output.h"
#include "experiments/output/forecast_output.h"
#include "experiments/phases/run_phases.h"
#include "experiments/search/fitting_layout.h"
#include "experiments/search/layout_search_output.h"
#include "experiments/sweep/common_length.h"
#include "experiments/sweep/sweep.h"
#include "sim/base/error.h"
#include "tools/collective_question.h"

namespace lambcast {
namespace {

// Moves the number of `key` from `texts` into `value`; throws Error (usage) if it is out of range.
template <typename Whole>
void take(WhatIf& texts, const char* key, Whole& value, std::int64_t low, std::int64_t high) {
  const auto said = texts.find(key);
  if (said == texts.end()) return;
  const std::string& text = said->second;
  const Where where{"", 0, key};
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size())
    fail_input(where, fmt::format("'{}' is not a whole number", text));
  if (number < low || number > high)
    fail_input(where, fmt::format("{} is out of range", number),
               fmt::format("{} to {}", low, high));
  value = static_cast<Whole>(number);
  texts.erase(said);
}

void take(WhatIf& texts, const char* key, std::string& value) {
  const auto said = texts.find(key);
  if (said == texts.end()) return;
  value = said->second;
  texts.erase(said);
}

constexpr std::int64_t most_steps = 1'000'000'000, most_jobs = 1024;

int take_jobs(WhatIf& texts) {
  int jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  take(texts, "jobs", jobs, 1, most_jobs);
  return jobs;
}

std::vector<Axis> axes_of(const Texts& lists, const Texts& scans) {
  std::vector<Axis> axes;
  for (const std::string& scan : scans) axes.push_back(parse_scan(scan));
  for (const std::string& list : lists) axes.push_back(parse_list(list));
  return axes;
}

}  // namespace

std::string simulate_answer(WhatIf texts, const Texts& then) {
  PauseWords pauses;
  take(texts, "mtbf", pauses.mtbf);
  take(texts, "checkpoint_every", pauses.checkpoint_every, 1, most_steps);
  take(texts, "checkpoint_time", pauses.checkpoint_time);
  take(texts, "restart_time", pauses.restart_time);
  take(texts, "startup_time", pauses.startup_time);
  take(texts, "evaluate_every", pauses.evaluate_every, 1, most_steps);
  take(texts, "evaluation_time", pauses.evaluation_time);
  take(texts, "skipped_steps", pauses.skipped_steps, 1, most_steps);
  Catalog catalog;
  if (!then.empty() || pauses.any())
    return phased_run_json(forecast_phases(texts, then, parse_pauses(pauses), catalog));
  const Scenario scenario = resolve(texts, catalog);
  CollectiveCosts costs;
  const Forecast result = forecast(scenario.training, costs);
  Judgement judgement = judgement_of(scenario, result);
  judgement.fused = fused_speedup(scenario, result, costs);
  for (Finding& finding : find_fitting_layouts(scenario, result.memory.fits, catalog))
    judgement.findings.push_back(std::move(finding));
  return forecast_json(scenario, result, judgement);
}

std::string advise_answer(const WhatIf& texts, const Texts& lists, const Texts& scans) {
  Catalog catalog;
  const std::vector<Axis> axes = axes_of(lists, scans);
  if (axes.empty()) return advice_json(advise(texts, catalog));
  return advice_list_json(advise_all(texts, axes, catalog));
}

std::string plan_answer(WhatIf texts, const StopAsked& stopped) {
  SearchOptions options;
  options.jobs = take_jobs(texts);
  take(texts, "best", options.best, 1, 1000);
  std::string every_setting;
  take(texts, "every_setting", every_setting);
  options.every_setting = every_setting == "true";
  options.progress = [&](std::size_t, std::size_t) { return !stopped(); };
  return layout_search_json(search_layouts(texts, options, std::make_shared<DescriptionTexts>()));
}

std::string compare_answer(const Texts& names, const WhatIf& texts, const Texts& clusters,
                           const Texts& optimizers, const Texts& exchanges) {
  ComparisonAxes axes{clusters, optimizers, exchanges};
  const bool of_folders = std::ranges::any_of(names, is_results_folder);
  if (of_folders && (!texts.empty() || !axes.clusters.empty() || !axes.optimizers.empty() ||
                     !axes.exchanges.empty()))
    throw Error(Exit::usage, "results folders take no other arguments: compare(FOLDER, FOLDER)");
  axes.clusters.insert(axes.clusters.begin(), names.begin(), names.end());
  if (of_folders) return folder_comparison_json(compare_folders(names));
  Catalog catalog;
  return comparison_json(compare(texts, axes, catalog));
}

std::string solve_answer(const SolveWords& words, const WhatIf& texts) {
  SolveQuestion question{texts, words.key, "", "", words.low, words.high};
  std::tie(question.metric, question.target) = parse_wanted(words.wanted);
  Catalog catalog;
  return solution_json(solve(question, catalog));
}

std::string sensitivity_answer(const WhatIf& texts, double by_percent) {
  Catalog catalog;
  return sensitivity_json(sensitivity_of(texts, by_percent / 100, catalog));
}

std::string collective_answer(WhatIf texts) {
  CollectiveWords words;
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, std::string&>>{{"op", words.op},
                                                                   {"cluster", words.cluster},
                                                                   {"backend", words.backend},
                                                                   {"algorithm", words.algorithm},
                                                                   {"protocol", words.protocol},
                                                                   {"network", words.network},
                                                                   {"symmetry", words.symmetry},
                                                                   {"b", words.begin},
                                                                   {"e", words.end},
                                                                   {"f", words.factor},
                                                                   {"jobs", words.jobs}})
    take(texts, key, value);
  constexpr int any = std::numeric_limits<int>::max();
  if (texts.contains("gpus_per_node"))
    take(texts, "gpus_per_node", words.gpus_per_node.emplace(), 0, any);
  for (const auto& [key, value] :
       std::initializer_list<std::pair<const char*, int&>>{{"gpus", words.gpus},
                                                           {"stride", words.stride},
                                                           {"node_stride", words.node_stride},
                                                           {"siblings", words.siblings}})
    take(texts, key, value, 0, any);
  for (const auto& [key, value] : texts) {
    if (!key.starts_with("cluster."))
      throw Error(Exit::usage, fmt::format("unknown argument '{}'", key));
    words.settings.emplace_back(key.substr(8), value);
  }
  const Cluster cluster = cluster_of(words);
  if (words.jobs.empty()) return collective_json(answer_of(words, cluster), cluster);
  const auto [jobs, forecasts] = jobs_answer_of(words, cluster);
  return jobs_json(jobs, forecasts, cluster);
}

Texts sweep_answer(const SweepWords& words, WhatIf texts, const StopAsked& stopped) {
  const int jobs = take_jobs(texts);
  const std::vector<Axis> axes = axes_of(words.lists, words.scans);
  Catalog catalog;
  const SweepPlan plan =
      with_common_length(words.file.empty() ? plan_sweep_of_flags(texts, axes)
                                            : plan_named_sweep(words.file, texts, axes),
                         catalog);
  Texts notes = plan.notes;
  const SweepSummary summary =
      run_sweep(plan, {.out = words.out,
                       .jobs = jobs,
                       .resume = words.resume,
                       .progress = [&](std::size_t, std::size_t) { return !stopped(); },
                       .note = [&](const std::string& note) { notes.push_back(note); }});
  const std::vector<Axis> varied = axes_of(plan.points);
  for (std::string& sentence : summary.findings.sentences(
           [&](std::size_t point) { return point_name(plan.points[point], varied); }))
    notes.push_back(std::move(sentence));
  return notes;
}

}  // namespace lambcast
