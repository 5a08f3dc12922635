#include "experiments/sweep/common_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "experiments/scenario/deepspeed_choice.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/run_length.h"
#include "experiments/scenario/words.h"

namespace lambcast {
namespace {

// Keys that may set the optimizer.
constexpr std::array<std::string_view, 4> keys_of_optimizers{"optimizer", "config", "megatron_args",
                                                             "torchtitan"};

bool block_gives_length(const PointBlock& block) {
  return std::ranges::any_of(length_keys,
                             [&](const char* key) { return !block.values(key).empty(); });
}

// Returns the freeze steps that bound the lengths of a list: the smallest and the largest step, and
// a share of the run.
std::vector<std::string> bounding_freeze_steps(const std::vector<std::string>& values) {
  std::optional<std::pair<double, std::string>> least, most;
  std::vector<std::string> bounds;
  for (const std::string& value : values) {
    double step = 0;
    const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), step);
    if (status != std::errc{} || end != value.data() + value.size()) {
      if (bounds.empty()) bounds.push_back(value);
      continue;
    }
    if (!least || step < least->first) least = {step, value};
    if (!most || step > most->first) most = {step, value};
  }
  if (least) bounds.push_back(least->second);
  if (most && most->second != least->second) bounds.push_back(most->second);
  return bounds;
}

std::vector<WhatIf> crossed(const std::vector<WhatIf>& questions, const std::string& key,
                            const std::vector<std::string>& values) {
  std::vector<WhatIf> all;
  for (const WhatIf& question : questions)
    for (const std::string& value : values) {
      all.push_back(question);
      all.back().insert_or_assign(key, value);
    }
  return all;
}

// Returns questions with every length that points of the block would have.
std::vector<WhatIf> bounding_questions(const PointBlock& block) {
  std::vector<WhatIf> questions{block.fixed};
  for (const auto& [key, values] : block.axes) {
    if (key == "freeze_step")
      questions = crossed(questions, key, bounding_freeze_steps(values));
    else if (std::ranges::find(keys_of_optimizers, key) != keys_of_optimizers.end())
      questions = crossed(questions, key, values);
  }
  return questions;
}

std::optional<std::int64_t> length_of_valid(const WhatIf& question, Catalog& catalog) {
  std::vector<Finding> ignored;
  const WhatIf asked = with_run_files(question, catalog, ignored);
  if (gives_length(asked)) return std::nullopt;
  const Words words(asked);
  deepspeed::DeepSpeedConfig config;
  if (const std::string* path = words.find("config")) config = *catalog.config(*path);
  if (const auto type = words.chosen<OptimizerType>("optimizer")) {
    if (!config.optimizer) config.optimizer.emplace();
    config.optimizer->type = *type;
  }
  if (!config.optimizer) return std::nullopt;
  const OptimizerType type = config.optimizer->type;
  return default_steps(type, deciding_freeze_step(words, freeze_step_of_file(config)));
}

}  // namespace

std::optional<std::int64_t> assumed_length(const WhatIf& question, Catalog& catalog) {
  try {
    return length_of_valid(question, catalog);
  } catch (const Error& error) {
    // resolve() reports a question that cannot be read, with its own message.
    if (error.code() != Exit::usage) throw;
    return std::nullopt;
  }
}

std::optional<std::int64_t> common_length(const std::vector<WhatIf>& questions, Catalog& catalog) {
  std::set<std::int64_t> lengths;
  for (const WhatIf& question : questions) {
    if (gives_length(question)) return std::nullopt;
    if (const auto length = assumed_length(question, catalog)) lengths.insert(*length);
  }
  return lengths.empty() ? std::nullopt : std::optional(*lengths.rbegin());
}

SweepPlan with_common_length(SweepPlan plan, Catalog& catalog) {
  std::vector<WhatIf> questions;
  for (const PointBlock& block : plan.points.blocks()) {
    if (block_gives_length(block)) return plan;
    std::ranges::move(bounding_questions(block), std::back_inserter(questions));
  }
  const auto steps = common_length(questions, catalog);
  if (!steps) return plan;
  std::vector<Axis> flags = plan.flags;
  flags.push_back({"steps", {fmt::format("{}", *steps)}});
  SweepPlan settled = plan_sweep(plan.text, plan.name, flags);
  settled.command = std::move(plan.command);
  settled.common_steps = steps;
  settled.notes.insert(settled.notes.begin(), common_length_text(*steps));
  return settled;
}

std::string assumed_run_text(const std::optional<std::int64_t>& common_steps) {
  return common_steps ? fmt::format(" of {} steps (assumed)", *common_steps) : "";
}

std::string common_length_text(std::int64_t steps) {
  return fmt::format("--steps not given: every run has {} optimizer steps", steps);
}

}  // namespace lambcast
