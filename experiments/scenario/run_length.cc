#include "experiments/scenario/run_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "experiments/scenario/invalid_value.h"
#include "models/training/plan/distinct_steps.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr std::int64_t shortest_assumed = 1000, max_samples = std::int64_t{1} << 53;

std::int64_t steps_of(std::int64_t samples, const TrainingPlan& training) {
  const std::int64_t full = training.batch.train, done = training.steps_done;
  if (!training.ramp) return (samples + full - 1) / full;
  return steps_for(*training.ramp, full, samples_in(*training.ramp, full, done) + samples) - done;
}

std::int64_t assumed_steps(OptimizerType type, std::optional<std::int64_t> freeze,
                           std::vector<Finding>& findings) {
  const std::int64_t steps = default_steps(type, freeze);
  std::string message = fmt::format("--steps not given; assumed: {} optimizer steps", steps);
  if (steps > shortest_assumed)
    message += fmt::format(" (freeze_step {} is {:.3g} % of them, as in the published recipes)",
                           *freeze, 100 * published_warmup_share(type));
  findings.push_back({Severity::note, "steps-assumed", std::move(message)});
  return steps;
}

// Returns the given number of samples, or the number that the given tokens fill.
std::optional<std::int64_t> samples_given(const Words& words, const TrainingPlan& training) {
  const auto samples = words.whole("samples", 1, max_samples);
  const auto tokens = words.number("tokens", 1, 1e18);
  if (!tokens) return samples;
  if (samples) fail_input(flag("tokens"), "sets the same length as --samples", "one of the two");
  if (training.recipe.curriculum)
    fail_input(flag("tokens"), "cannot be turned into samples, whose length a curriculum changes",
               "--samples or --steps");
  if (training.seq_len == 0)
    fail_input(flag("tokens"), fmt::format("{} has no tokens", training.model->name), "--samples");
  const double filled = std::ceil(*tokens / static_cast<double>(training.seq_len));
  return static_cast<std::int64_t>(std::min(filled, static_cast<double>(max_samples)));
}

}  // namespace

bool is_length(std::string_view key) {
  return std::find(length_keys.begin(), length_keys.end(), key) != length_keys.end();
}

bool gives_length(const WhatIf& question) {
  return std::ranges::any_of(length_keys, [&](const char* key) { return question.contains(key); });
}

double published_warmup_share(OptimizerType type) {
  return model_of(onebit_of(type)).published_freeze_share;
}

std::optional<std::int64_t> freeze_step_given(const Words& words,
                                              std::optional<std::int64_t> of_file) {
  if (const std::string* value = words.find("freeze_step"))
    return value->ends_with('%') ? std::nullopt : words.whole("freeze_step", 0, max_steps);
  return of_file;
}

std::optional<std::int64_t> deciding_freeze_step(const Words& words,
                                                 std::optional<std::int64_t> of_file) {
  return of_file ? of_file : freeze_step_given(words, of_file);
}

std::int64_t default_steps(OptimizerType type, std::optional<std::int64_t> freeze_step) {
  if (!freeze_step) return shortest_assumed;
  const double derived =
      std::ceil(static_cast<double>(*freeze_step) / published_warmup_share(type) - 1e-6);
  return std::max(shortest_assumed,
                  static_cast<std::int64_t>(std::min(derived, static_cast<double>(max_steps))));
}

std::int64_t choose_steps(const Words& words, const TrainingPlan& training,
                          std::optional<std::int64_t> freeze_step_of_file,
                          std::vector<Finding>& findings) {
  const auto given = words.whole("steps", 1, max_steps);
  const auto samples = samples_given(words, training);
  if (!samples)
    return given ? *given
                 : assumed_steps(training.optimizer(),
                                 deciding_freeze_step(words, freeze_step_of_file), findings);
  const std::string key = words.find("tokens") != nullptr ? "tokens" : "samples";
  const std::int64_t steps = steps_of(*samples, training);
  if (given && *given != steps)
    fail_input(
        flag(key),
        fmt::format("{} samples at a global batch of {}{} take {} steps, but --steps is {}; try: "
                    "one of the two alone",
                    *samples, training.ramp ? "up to " : "", training.batch.train, steps, *given));
  if (steps > max_steps)
    fail_input(flag(key), fmt::format("is {} steps", steps), fmt::format("up to {}", max_steps));
  return steps;
}

std::int64_t choose_steps_done(const Words& words, OptimizerType optimizer) {
  const std::int64_t done = words.whole("steps_done", 0, max_steps).value_or(0);
  if (done > 0 && optimizer == OptimizerType::zero_one_adam)
    fail_input(flag("steps_done"),
               "0/1 Adam restarts its policy if it loads a checkpoint, as a new run does", "0");
  return done;
}

std::optional<BatchRamp> choose_ramp(const Words& words, std::int64_t global_batch) {
  const std::string* text = words.find("rampup_batch_size");
  if (text == nullptr) return std::nullopt;
  const Where where = flag("rampup_batch_size");
  const BatchRamp ramp = of_key("rampup_batch_size", [&] { return parse_ramp(*text, where); });
  check_reaches(ramp, global_batch, where);  // may be valid with another batch
  return ramp;
}

void check_ramp(const TrainingPlan& training, std::vector<Finding>& findings) {
  if (!training.ramp) return;
  const std::vector<BatchPhase> phases = batches_of(training);
  const std::int64_t at_once = training.batch.micro * training.data_parallel();
  std::int64_t before = 0;
  for (const BatchPhase& phase : phases) {
    if (phase.batch % at_once != 0)
      fail_input(flag("rampup_batch_size"),
                 fmt::format("a batch of {} is not divisible by micro batch {} x dp {}",
                             phase.batch, training.batch.micro, training.data_parallel()));
    if (phase.batch < training.batch.train) before += phase.steps;
  }
  findings.push_back(
      {Severity::note, "batch-ramp",
       fmt::format("{} of the run's {} steps, with {} of its {} samples, have batches below {}; {} "
                   "sizes are forecast, and a phase has the mean of its steps",
                   before, training.steps,
                   samples_of(training) - (training.steps - before) * training.batch.train,
                   samples_of(training), training.batch.train, phases.size())});
}

std::optional<std::int64_t> choose_freeze_step(const Words& words, const TrainingPlan& training) {
  const std::string* value = words.find("freeze_step");
  if (value == nullptr) return std::nullopt;
  if (!value->ends_with('%')) return words.whole("freeze_step", 0, max_steps);
  double percent = 0;
  const auto [end, status] =
      std::from_chars(value->data(), value->data() + value->size() - 1, percent);
  if (status != std::errc{} || end != value->data() + value->size() - 1 || !(percent >= 0) ||
      percent > 100)
    of_key("freeze_step", [&] {
      fail_input(flag("freeze_step"), fmt::format("'{}' is not a percentage", *value),
                 "0% to 100%");
    });
  // Rounded number of warm-up updates. With fp16 the dry run takes the first step.
  const auto updates = std::llround(percent / 100 * static_cast<double>(training.steps));
  const bool fp16 = training.recipe.precision.weights == DataType::fp16;
  return training.steps_done + updates + (fp16 ? 1 : 0);
}

}  // namespace lambcast
