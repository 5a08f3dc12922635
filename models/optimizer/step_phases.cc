#include "models/optimizer/step_phases.h"

#include <algorithm>

namespace lambcast {

StepPhases uniform_phases(const RunOfSteps& run) {
  const std::int64_t sending = run.steps / run.steps_per_exchange;
  return {{StepKind::silent, run.steps - sending}, {StepKind::uniform, sending}};
}

StepPhases onebit_phases(const RunOfSteps& run) {
  const std::int64_t dry = run.dry_run ? 1 : 0;
  const std::int64_t warmup = std::clamp<std::int64_t>(run.warmup - dry, 0, run.steps - dry);
  return {{StepKind::dry_run, dry},
          {StepKind::warmup, warmup},
          {StepKind::compression, run.steps - dry - warmup}};
}

// Counts interval by interval, since a run may have 10^9 steps. Among the steps after `from` up to
// `to`, to / interval - from / interval are multiples of the interval. The dry run counts as step
// 1.
ZeroOneSteps zero_one_steps(const OnebitSchedule& schedule, std::int64_t steps) {
  ZeroOneSteps counts;
  // The variance is frozen at the end of the first step after var_freeze_step, not counting the dry
  // run.
  const std::int64_t last = steps + 1;
  const std::int64_t frozen =
      std::min(steps, std::max<std::int64_t>(1, schedule.var_freeze_step)) + 1;
  const std::int64_t updates = schedule.var_update_scaler;  // updates in each interval
  std::int64_t from = 1;
  for (std::int64_t interval = 1; from < frozen; interval *= 2) {
    const std::int64_t met = from / interval;
    const std::int64_t to =
        std::min(frozen / interval - met, updates) == updates ? (met + updates) * interval : frozen;
    const std::int64_t full = to / interval - met;
    counts.full += full;
    counts.rounds += to - from - full;
    from = to;
  }
  const std::int64_t most = schedule.local_step_clipper;
  const std::int64_t lasts = schedule.local_step_scaler;
  for (std::int64_t interval = 1; from < last;) {
    // An interval lasts to the end of the run if it is the longest, or longer than the remaining
    // steps.
    const bool to_the_end = interval == most || interval > last || lasts >= last - from;
    const std::int64_t to = to_the_end ? last : from + lasts;
    const std::int64_t onebit = to / interval - from / interval;
    counts.onebit += onebit;
    counts.silent += to - from - onebit;
    from = to;
    interval = interval > most / 2 ? most : interval * 2;
  }
  return counts;
}

}  // namespace lambcast
