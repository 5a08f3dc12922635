#include "validate/program/unseen_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "embedded/unseen_stack_files.h"
#include "experiments/scenario/scenario.h"
#include "models/training/price/measured_program.h"
#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

constexpr double most_exposed = 0.5;
constexpr double median_of_normal = 0.6745;  // of the absolute value, in standard deviations

// The columns that the forecast does not read.
constexpr const char* told[] = {"program", "source", "note", "unstated", "speedup_of"};

std::string machine_of(const WhatIf& what_if) {
  std::string machine;
  for (const char* key : {"cluster", "device", "precision"})
    if (const auto said = what_if.find(key); said != what_if.end())
      machine += (machine.empty() ? "" : " ") + said->second;
  return machine;
}

csv::Table without_told(csv::Table table) {
  for (const char* column : told) {
    const auto at = std::find(table.header.begin(), table.header.end(), column);
    const auto index = at - table.header.begin();
    table.header.erase(at);
    for (auto& row : table.rows) row.erase(row.begin() + index);
  }
  return table;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double half_width_of(const SourceResult& result) {
  return std::log(*result.high / *result.low) / 2;
}

}  // namespace

std::vector<UnseenStack> unseen_stacks() {
  const csv::Table table = parse_rows(unseen_stack_files().front().text, "unseen_stacks.csv");
  std::vector<UnseenStack> stacks;
  for (SourceFigure& figure : figures_of_runs(without_told(table))) {
    const auto row = static_cast<std::size_t>(figure.row) - 1;
    const std::string &program = table.text(row, "program"), &plain = table.text(row, "speedup_of");
    const std::string machine = machine_of(figure.what_if);
    auto stack = std::find_if(stacks.begin(), stacks.end(), [&](const UnseenStack& of) {
      return of.program == program && of.machine == machine;
    });
    if (stack == stacks.end())
      stack = stacks.insert(stack, {program, machine, figure.what_if.at("framework"), {}});
    if (!table.text(row, "unstated").empty()) stack->is_stated = false;
    if (!plain.empty()) stack->plain_runs.emplace_back(figure.name, plain);
    stack->rows.push_back(std::move(figure));
  }
  return stacks;
}

std::vector<StackLevel> levels_of(const std::vector<UnseenStack>& stacks) {
  Catalog catalog(std::make_shared<DescriptionTexts>());
  std::vector<StackLevel> levels;
  for (const UnseenStack& stack : stacks) {
    const TrainingPlan training = resolve(stack.rows.front().what_if, catalog).training;
    if (!stack.is_stated || training.model->ffn == 0) continue;
    std::vector<double> logs;
    for (const SourceResult& result : replay_figures(stack.rows)) {
      if (!result.ok()) throw Error(Exit::usage, result.of.name + ": " + result.status);
      const bool plain = result.of.what_if.count("exchange") == 0;
      if (plain && result.exposed < most_exposed) logs.push_back(-std::log1p(result.error));
    }
    if (!logs.empty())
      levels.push_back({stack.program, stack.machine, stack.framework, mean(logs),
                        variance_of_kernels(training)});
  }
  return levels;
}

ProgramPrior learn_prior(const std::vector<StackLevel>& levels) {
  std::map<std::string, std::vector<double>> excess;
  for (const StackLevel& level : levels)
    excess[level.program].push_back(level.log * level.log - level.variance);
  std::vector<double> of_programs;
  for (const auto& [program, squares] : excess) of_programs.push_back(mean(squares));
  return {std::sqrt(std::max(0.0, mean(of_programs))), static_cast<int>(excess.size()),
          static_cast<int>(levels.size())};
}

std::string prior_text(const ProgramPrior& prior) {
  return fmt::format(
      "# The level of a program that nobody measured (topologies/program_level.h). Learned, not\n"
      "# written: see validate/program/unseen_stacks.h. Do not edit.\n"
      "learned = \"levels of unseen stacks about 1, beyond what kernels of their GPU are off; each "
      "program weighs alike\"\n"
      "spread = {:.3f}\nprograms = {}\nstacks = {}\n",
      prior.spread, prior.programs, prior.stacks);
}

LeftOutStacks leave_out_stacks() {
  const std::vector<UnseenStack> stacks = unseen_stacks();
  const std::vector<StackLevel> levels = levels_of(stacks);
  LeftOutStacks left_out;
  std::vector<double> medians, medians_of_levels, variances;
  for (const StackLevel& level : levels) variances.push_back(level.variance);
  auto level = levels.begin();
  for (const UnseenStack& stack : stacks) {
    if (!stack.is_stated) continue;
    std::vector<StackLevel> others = levels;
    // Levels are in the order of the stacks; those that wait for their network have none.
    const bool has_level =
        level != levels.end() && level->program == stack.program && level->machine == stack.machine;
    if (has_level) others.erase(others.begin() + (level++ - levels.begin()));
    LeftOutStack of{stack, replay_figures(stack.rows, learn_prior(others)), {}, 0};
    of.score = score_of(of.results);
    for (const SourceResult& result : of.results)
      of.half_width += half_width_of(result) / static_cast<double>(of.results.size());
    medians.push_back(of.score.median);
    if (has_level) medians_of_levels.push_back(of.score.median);
    left_out.rows += of.score.with_interval;
    left_out.inside += of.score.inside;
    left_out.stacks.push_back(std::move(of));
  }
  const double spread = learn_prior(levels).spread;
  left_out.of_medians = validate::quantile(medians, 0.5);
  left_out.of_levels = validate::quantile(medians_of_levels, 0.5);
  left_out.limit = std::expm1(
      median_of_normal * std::sqrt(spread * spread + mean(variances) + run_spread * run_spread));
  return left_out;
}

std::vector<SourceResult> results_of(const LeftOutStacks& left_out) {
  std::vector<SourceResult> results;
  for (const LeftOutStack& stack : left_out.stacks)
    results.insert(results.end(), stack.results.begin(), stack.results.end());
  return results;
}

std::string left_out_table(const LeftOutStacks& left_out) {
  std::string out = fmt::format("{:<29} {:<39} {:>4} {:>6} {:>6} {:>6}\n", "unseen program",
                                "machine", "rows", "med.", "inside", "width");
  for (const LeftOutStack& of : left_out.stacks)
    out += fmt::format("{:<29} {:<39} {:>4} {:>5.1f}% {:>6} {:>6.2f}\n", of.stack.program,
                       of.stack.machine, of.score.rows, 100 * of.score.median,
                       fmt::format("{}/{}", of.score.inside, of.score.with_interval),
                       std::exp(of.half_width));
  return out +
         fmt::format(
             "Grade S, {} stacks left out in turn: median of their medians {:.1f}%, {:.1f}% where "
             "they "
             "mostly compute (the spread of programs allows {:.1f}%), {} of {} rows ({:.0f}%) "
             "inside "
             "90 % intervals.\n",
             left_out.stacks.size(), 100 * left_out.of_medians, 100 * left_out.of_levels,
             100 * left_out.limit, left_out.inside, left_out.rows,
             100.0 * left_out.inside / left_out.rows);
}

}  // namespace lambcast
