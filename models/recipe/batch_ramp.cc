#include "models/recipe/batch_ramp.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr const char* form = "START:INCREMENT:SAMPLES";
constexpr std::int64_t most_samples = 1'000'000'000'000;

std::int64_t whole_of(std::string_view text, const Where& where) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || last != end || value < 1 || value > most_samples)
    fail_input(where, fmt::format("'{}' is not a whole number in range", text),
               fmt::format("{}, each 1 to {}", form, most_samples));
  return value;
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Returns the phases of the ramp; the last one has no end.
std::vector<BatchPhase> growth(const BatchRamp& ramp, std::int64_t full) {
  const std::int64_t increments = (full - ramp.start) / ramp.increment;
  LAMBCAST_CHECK(increments > 0 && increments <= most_batches, "{} increments", increments);
  std::vector<BatchPhase> phases;
  std::int64_t consumed = 0;
  while (consumed < ramp.samples) {
    const std::int64_t level = consumed * increments / ramp.samples;
    const std::int64_t batch = ramp.start + level * ramp.increment;
    // Number of steps of this batch until the next boundary is reached.
    const std::int64_t left = (level + 1) * ramp.samples - consumed * increments;
    const std::int64_t steps = divided_up(left, batch * increments);
    phases.push_back({batch, steps});
    consumed += steps * batch;
  }
  phases.push_back({full, std::numeric_limits<std::int64_t>::max()});
  return phases;
}

}  // namespace

BatchRamp parse_ramp(std::string_view text, const Where& where) {
  std::array<std::string_view, 3> parts;
  std::string_view rest = text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t colon = i + 1 < parts.size() ? rest.find(':') : rest.size();
    if (colon == std::string_view::npos)
      fail_input(where, fmt::format("'{}' is not a ramp of the batch", text), form);
    parts[i] = rest.substr(0, colon);
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return {whole_of(parts[0], where), whole_of(parts[1], where), whole_of(parts[2], where)};
}

void check_reaches(const BatchRamp& ramp, std::int64_t full, const Where& where) {
  if (ramp.start >= full)
    fail_input(where, fmt::format("starts with {} samples, and the batch is {}", ramp.start, full),
               fmt::format("1 to {}", full - 1));
  const std::int64_t between = full - ramp.start;
  if (between % ramp.increment != 0)
    fail_input(where, fmt::format("{} to {} samples are no whole number of increments of {}",
                                  ramp.start, full, ramp.increment));
  if (between / ramp.increment > most_batches)
    fail_input(where, fmt::format("has {} increments", between / ramp.increment),
               fmt::format("up to {}", most_batches));
}

std::vector<BatchPhase> batch_phases(const BatchRamp& ramp, std::int64_t full,
                                     std::int64_t total_steps) {
  LAMBCAST_CHECK(total_steps >= 0, "{} steps", total_steps);
  std::vector<BatchPhase> phases;
  for (BatchPhase phase : growth(ramp, full)) {
    phase.steps = std::min(phase.steps, total_steps);
    if (phase.steps == 0) break;
    phases.push_back(phase);
    total_steps -= phase.steps;
  }
  return phases;
}

std::int64_t samples_in(const BatchRamp& ramp, std::int64_t full, std::int64_t steps) {
  std::int64_t samples = 0;
  for (const BatchPhase& phase : batch_phases(ramp, full, steps))
    samples += phase.batch * phase.steps;
  return samples;
}

std::int64_t steps_for(const BatchRamp& ramp, std::int64_t full, std::int64_t samples) {
  std::int64_t steps = 0;
  for (const BatchPhase& phase : growth(ramp, full)) {
    const std::int64_t needed = std::min(divided_up(samples, phase.batch), phase.steps);
    steps += needed;
    samples -= needed * phase.batch;
    if (samples <= 0) break;
  }
  return steps;
}

}  // namespace lambcast
