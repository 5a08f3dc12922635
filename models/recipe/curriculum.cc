#include "models/recipe/curriculum.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast {
namespace {

std::int64_t discrete_difficulty(const Curriculum& c, std::int64_t step) {
  if (step > c.max_step.back()) return c.difficulty.back();
  const auto limit = std::find_if(c.max_step.begin(), c.max_step.end(),
                                  [&](std::int64_t last) { return step <= last; });
  return c.difficulty[static_cast<std::size_t>(limit - c.max_step.begin())];
}

// Returns the scheduled length at `step`, independent of earlier steps.
std::int64_t scheduled(const Curriculum& c, std::int64_t step) {
  if (c.schedule == CurriculumSchedule::fixed_discrete) return discrete_difficulty(c, step);
  const double degree = c.schedule == CurriculumSchedule::fixed_root ? c.root_degree : 1.0;
  const double share =
      std::pow(static_cast<double>(step) / static_cast<double>(c.total_step), 1.0 / degree);
  const double span = static_cast<double>(c.max_difficulty - c.min_difficulty);
  const double level = std::floor(share * span + static_cast<double>(c.min_difficulty));
  if (!(level < static_cast<double>(c.max_difficulty + c.difficulty_step))) return c.max_difficulty;
  const auto difficulty = static_cast<std::int64_t>(level);
  return std::min(difficulty - difficulty % c.difficulty_step, c.max_difficulty);
}

// Returns the last step up to `total` that has the same difficulty as all steps from `step` on. The
// schedule does not decrease in between: a discrete one changes only at boundaries, others never
// decrease.
std::int64_t last_alike(const Curriculum& c, std::int64_t step, std::int64_t total) {
  if (c.schedule == CurriculumSchedule::fixed_discrete) {
    std::int64_t last = total;
    for (const std::int64_t limit : c.max_step)
      if (limit >= step) last = std::min(last, limit);
    return last;
  }
  const std::int64_t here = scheduled(c, step);
  std::int64_t alike = step;
  std::int64_t beyond = total;
  if (scheduled(c, total) == here) return total;
  while (beyond - alike > 1) {
    const std::int64_t middle = alike + (beyond - alike) / 2;
    (scheduled(c, middle) == here ? alike : beyond) = middle;
  }
  return alike;
}

}  // namespace

std::vector<SeqLenPhase> length_phases(const Curriculum& c, std::int64_t total_steps) {
  LAMBCAST_CHECK(total_steps >= 0, "{} steps", total_steps);
  std::vector<SeqLenPhase> result;
  const auto append = [&](std::int64_t seq_len, std::int64_t steps) {
    if (steps == 0) return;
    if (!result.empty() && result.back().seq_len == seq_len) {
      result.back().steps += steps;
    } else {
      result.push_back({seq_len, steps});
    }
  };
  std::int64_t current = c.min_difficulty;
  std::int64_t done = 0;
  while (done < total_steps && current < c.max_difficulty) {
    current = scheduled(c, done + 1);
    const std::int64_t last = last_alike(c, done + 1, total_steps);
    append(current, last - done);
    done = last;
  }
  append(current, total_steps - done);
  return result;
}

std::int64_t seq_len_at(const Curriculum& c, std::int64_t step) {
  LAMBCAST_CHECK(step >= 1, "step {}", step);
  return length_phases(c, step).back().seq_len;
}

}  // namespace lambcast
