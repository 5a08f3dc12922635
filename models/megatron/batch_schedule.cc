#include "models/megatron/batch_schedule.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace lambcast::megatron {
namespace {

constexpr const char* form = "\"0:BATCH TOKENS:BATCH ...\", in rising order";
constexpr double most_samples = 1e15;

struct Step {
  std::int64_t samples = 0, batch = 0;
};

std::int64_t number(std::string_view text, const Where& where) {
  double unit = 1;
  const std::string_view suffixes = "KMBT";
  if (const auto at = text.empty() ? text.npos : suffixes.find(text.back()); at != text.npos) {
    for (std::size_t i = 0; i <= at; ++i) unit *= 1000;
    text.remove_suffix(1);
  }
  double value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || last != text.data() + text.size() ||
      !(value >= 0 && value * unit <= most_samples))
    fail_input(where, fmt::format("'{}' is not a number of tokens or samples", text), form);
  return static_cast<std::int64_t>(value * unit);
}

std::vector<Step> steps_of(std::string_view text, std::int64_t tokens, const Where& where) {
  std::vector<Step> steps;
  while (true) {
    const auto begin = text.find_first_not_of(" ,");
    if (begin == text.npos) break;
    text.remove_prefix(begin);
    const std::string_view step = text.substr(0, text.find_first_of(" ,"));
    text.remove_prefix(step.size());
    const auto colon = step.find(':');
    if (colon == step.npos) fail_input(where, fmt::format("'{}' is not a step of it", step), form);
    steps.push_back(
        {number(step.substr(0, colon), where) / tokens, number(step.substr(colon + 1), where)});
    const bool rises = steps.size() == 1 ? steps.back().samples == 0
                                         : steps.back().samples > steps[steps.size() - 2].samples;
    if (!rises && steps.size() > 1 && tokens > 1 &&
        steps.back().samples == steps[steps.size() - 2].samples)
      fail_input(
          where,
          fmt::format(
              "entry '{}' starts less than one sequence ({} tokens) after the entry before it",
              step, tokens),
          form);
    if (!rises || steps.back().batch == 0)
      fail_input(where, fmt::format("'{}' is not expected here", step), form);
  }
  if (steps.empty()) fail_input(where, "has no steps", form);
  return steps;
}

// Returns whether steps have equal distances, within one sample, and equal increments.
bool is_even(const std::vector<Step>& steps) {
  const auto last = static_cast<std::int64_t>(steps.size()) - 1;
  const double apart = static_cast<double>(steps.back().samples) / static_cast<double>(last);
  for (std::int64_t i = 1; i <= last; ++i) {
    const Step &step = steps[static_cast<std::size_t>(i)],
               &before = steps[static_cast<std::size_t>(i - 1)];
    const double off = static_cast<double>(step.samples) - apart * static_cast<double>(i);
    if (step.batch - before.batch != steps[1].batch - steps[0].batch || off >= 1 || off <= -1)
      return false;
  }
  return steps[1].batch > steps[0].batch;
}

}  // namespace

ScheduledBatch scheduled_batch(std::string_view text, std::optional<std::int64_t> seq_length,
                               const Where& where) {
  const std::vector<Step> steps = steps_of(text, seq_length.value_or(1), where);
  const Step first = steps.front(), last = steps.back();
  if (steps.size() == 1) return {first.batch, {}};
  if (!is_even(steps))
    fail_input(where,
               "grows by unequal steps, but a ramp has equal steps; try: each batch as a phase "
               "(--then \"global_batch=BATCH samples=SAMPLES\")");
  return {last.batch,
          fmt::format("{}:{}:{}", first.batch, steps[1].batch - first.batch, last.samples)};
}

}  // namespace lambcast::megatron
