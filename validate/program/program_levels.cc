#include "validate/program/program_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "experiments/scenario/scenario.h"
#include "models/training/price/measured_program.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

std::vector<StackLevel> levels_of(const std::vector<UnseenStack>& stacks) {
  Catalog catalog(std::make_shared<DescriptionTexts>());
  std::vector<StackLevel> levels;
  for (const UnseenStack& stack : stacks) {
    if (stack.rows.empty()) continue;
    const TrainingPlan training = resolve(stack.rows.front().what_if, catalog).training;
    if (training.model->ffn == 0) continue;
    std::vector<double> logs;
    for (const SourceResult& result : replay_figures(stack.rows)) {
      if (!result.ok()) throw Error(Exit::usage, result.of.name + ": " + result.status);
      if (mostly_computes(result)) logs.push_back(-std::log1p(result.error));
    }
    if (!logs.empty())
      levels.push_back({stack.program, stack.machine, stack.framework, mean(logs),
                        variance_of_kernels(training)});
  }
  return levels;
}

std::vector<StackLevel> levels_in_view(const std::vector<SourceResult>& results) {
  Catalog catalog(std::make_shared<DescriptionTexts>());
  struct Logs {
    std::string machine, framework;
    std::vector<double> values;
  };
  std::map<std::string, std::vector<Logs>> sources;
  for (const SourceResult& result : results) {
    if (!result.ok() || result.of.quantity == Quantity::memory_gib || !mostly_computes(result))
      continue;
    const TrainingPlan training = resolve(result.of.what_if, catalog).training;
    if (training.model->ffn == 0) continue;
    const std::string machine = machine_of(result.of.what_if);
    const std::string framework(framework_of_run(training));
    std::vector<Logs>& stacks = sources[result.of.source];
    auto stack = std::ranges::find_if(
        stacks, [&](const Logs& of) { return of.machine == machine && of.framework == framework; });
    if (stack == stacks.end()) stack = stacks.insert(stack, {machine, framework, {}});
    stack->values.push_back(std::log(training.cluster->stack.compute_scale.value) -
                            std::log1p(result.error));
  }
  std::vector<StackLevel> levels;
  for (const auto& [source, stacks] : sources)
    for (const Logs& stack : stacks)
      levels.push_back({source, stack.machine, stack.framework, mean(stack.values), 0});
  return levels;
}

std::vector<StackLevel> shipped_levels() {
  std::vector<StackLevel> levels = levels_of(unseen_stacks());
  const std::vector<StackLevel> in_view = levels_in_view(replay_sources().results);
  levels.insert(levels.end(), in_view.begin(), in_view.end());
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
      "# written: see validate/program/program_levels.h. Do not edit.\n"
      "learned = \"levels of programs about 1, beyond what kernels of their GPU are off; each "
      "program weighs alike\"\n"
      "spread = {:.3f}\nprograms = {}\nstacks = {}\n",
      prior.spread, prior.programs, prior.stacks);
}

}  // namespace lambcast
