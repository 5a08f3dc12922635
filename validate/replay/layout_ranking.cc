#include "validate/replay/layout_ranking.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>

#include "experiments/search/layout_search.h"
#include "validate/calibrate/calibrate.h"

namespace lambcast {
namespace {

constexpr const char* layout_keys[] = {
    "tp",         "cp",          "ep",          "pp",        "interleave",
    "zero_stage", "shard_ranks", "micro_batch", "recompute", "sequence_parallel",
    "grad_accum"};

LayoutCandidate layout_of(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  LayoutCandidate layout;
  layout.tp = how.layout.tp;
  layout.cp = how.layout.cp;
  layout.ep = how.layout.ep;
  layout.pp = how.layout.pp;
  layout.interleave = how.layout.virtual_stages;
  layout.micro_batch = training.batch.micro;
  layout.zero_stage = static_cast<int>(how.sharding);
  return layout;
}

// A job under construction, keyed by the settings of its rows.
struct Gathered {
  LayoutJob job;
  double fastest = 0;
  std::map<std::string, std::vector<std::pair<double, double>>> by_layout;
};

// Returns a measure of speed that is largest for the fastest run, for any measured quantity.
double speed(const SourceResult& result, double value) {
  const Quantity of = result.of.quantity;
  const bool time =
      of == Quantity::step_time_s || of == Quantity::days || of == Quantity::run_time_s;
  return time ? 1 / value : value;
}

void gather(const SourceResult& result, Catalog& catalog, std::map<std::string, Gathered>& jobs) {
  if (!result.ok() || result.of.quantity == Quantity::memory_gib) return;
  const TrainingPlan training = resolve(result.of.what_if, catalog).training;
  if (!training.parallelism) return;
  WhatIf asked = result.of.what_if, layout;
  for (const char* key : layout_keys) {
    if (const auto said = asked.find(key); said != asked.end()) layout.insert(*said);
    asked.erase(key);
  }
  // Chunks of layers determine the schedule, except for schedules with their own name.
  if (training.parallelism->schedule <= parallel::PipelineSchedule::interleaved)
    asked.erase("pipeline_schedule");
  asked["global_batch"] = fmt::format("{}", training.batch.train);
  const auto text = [](const WhatIf& what_if) {
    std::string all;
    for (const auto& [key, value] : what_if) all += fmt::format("{}={}\n", key, value);
    return all;
  };
  Gathered& gathered = jobs[fmt::format("{}\n{}\n{}\n{}", result.of.source, result.of.machine,
                                        name_of(result.of.quantity), text(asked))];
  gathered.by_layout[text(layout)].emplace_back(speed(result, result.of.measured),
                                                speed(result, result.forecast));
  if (speed(result, result.of.measured) <= gathered.fastest) return;
  gathered.fastest = speed(result, result.of.measured);
  gathered.job = {result.of.source, result.of.name, asked, layout_of(training), {}, {}};
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

}  // namespace

std::vector<LayoutJob> layout_jobs(const std::vector<SourceResult>& results) {
  Catalog catalog;
  std::map<std::string, Gathered> gathered;
  for (const SourceResult& result : results) gather(result, catalog, gathered);
  std::vector<LayoutJob> jobs;
  for (auto& [asked, of] : gathered) {
    for (const auto& [layout, pairs] : of.by_layout) {
      double measured = 0, forecast = 0;
      for (const auto& [was, is] : pairs) {
        measured += was / static_cast<double>(pairs.size());
        forecast += is / static_cast<double>(pairs.size());
      }
      of.job.measured.push_back(measured);
      of.job.forecast.push_back(forecast);
    }
    jobs.push_back(std::move(of.job));
  }
  return jobs;
}

std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(a), y = ranks_of(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double both = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean) * (y[i] - mean);
    of_x += (x[i] - mean) * (x[i] - mean);
    of_y += (y[i] - mean) * (y[i] - mean);
  }
  if (of_x == 0 || of_y == 0) return std::nullopt;
  return both / std::sqrt(of_x * of_y);
}

double regret_of(const LayoutJob& job) {
  const auto preferred = std::max_element(job.forecast.begin(), job.forecast.end());
  return *std::max_element(job.measured.begin(), job.measured.end()) /
             job.measured[static_cast<std::size_t>(preferred - job.forecast.begin())] -
         1;
}

LayoutChoice choice_of(const std::vector<LayoutJob>& jobs) {
  LayoutChoice choice;
  std::vector<double> regrets, correlations;
  for (const LayoutJob& job : jobs) {
    if (job.measured.size() < 2) continue;
    regrets.push_back(regret_of(job));
    choice.best_found += regrets.back() == 0 ? 1 : 0;
    if (job.measured.size() < 3) continue;
    if (const auto ranks = rank_correlation(job.measured, job.forecast))
      correlations.push_back(*ranks);
  }
  choice.jobs = static_cast<int>(regrets.size());
  choice.ranked = static_cast<int>(correlations.size());
  if (!regrets.empty()) {
    choice.median_regret = validate::quantile(regrets, 0.5);
    choice.worst_regret = *std::max_element(regrets.begin(), regrets.end());
  }
  if (!correlations.empty()) choice.median_correlation = validate::quantile(correlations, 0.5);
  return choice;
}

std::string choice_table(const LayoutChoice& in_view, const LayoutChoice& left_out) {
  std::string out = fmt::format("{:<44} {:>4} {:>10} {:>7} {:>6} {:>6}\n",
                                "choice among measured layouts of a job", "jobs", "best found",
                                "regret", "worst", "ranks");
  const auto line = [&](const char* name, const LayoutChoice& of) {
    if (of.jobs > 0)
      out += fmt::format("{:<44} {:>4} {:>10} {:>6.1f}% {:>5.1f}% {:>6}\n", name, of.jobs,
                         of.best_found, 100 * of.median_regret, 100 * of.worst_regret,
                         of.ranked > 0 ? fmt::format("{:.2f}", of.median_correlation) : "-");
  };
  line("grade U and R: sources in view", in_view);
  line("grade S: stacks left out", left_out);
  return out +
         "regret: by how much the layout that the forecast prefers is slower than the fastest, "
         "median of the jobs. ranks: correlation, of jobs with three layouts or more.\n";
}

std::optional<std::size_t> place_of_fastest(const LayoutJob& job, std::size_t best, int jobs) {
  SearchOptions options;
  options.jobs = jobs;
  options.best = best;
  options.compression = false;
  const LayoutSearch search =
      search_layouts(job.asked, options, std::make_shared<DescriptionTexts>());
  for (std::size_t i = 0; i < search.best.size(); ++i)
    if (search.best[i].layout.divides_as(job.fastest)) return i + 1;
  return std::nullopt;
}

}  // namespace lambcast
