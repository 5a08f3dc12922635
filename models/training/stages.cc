#include <algorithm>

#include "models/optimizer/galore.h"
#include "models/training/stages.h"

namespace lambcast {
namespace {

// Without a wrapper the first step of a 1-bit optimizer is its dry run.
bool begins_with_dry_run(const TrainingPlan& training) {
  return is_onebit(training.optimizer()) && training.wrapper() == Wrapper::none;
}

// The kinds in the order they occur; lengths as if there were no curriculum.
std::vector<Stage> kinds_of(const TrainingPlan& training) {
  const std::int64_t steps = training.steps;
  const std::int64_t dry = begins_with_dry_run(training) ? 1 : 0;
  if (const std::int64_t every = steps_per_exchange(training.exchange); every > 1)
    return {{StepKind::silent, 0, steps - steps / every}, {StepKind::uniform, 0, steps / every}};
  switch (training.optimizer()) {
    case OptimizerType::onebit_adam:
    case OptimizerType::onebit_lamb: {
      // One rank has nobody to talk to, but its stages still differ in what they compute.
      const std::int64_t warmup = std::clamp<std::int64_t>(
          warmup_steps(training.recipe) - training.steps_done - dry, 0, steps - dry);
      return {{StepKind::dry_run, 0, dry},
              {StepKind::warmup, 0, warmup},
              {StepKind::compression, 0, steps - dry - warmup}};
    }
    case OptimizerType::zero_one_adam: {
      const ZeroOneSteps counts = zero_one_steps(training.recipe.onebit, steps - dry);
      return {{StepKind::dry_run, 0, dry},
              {StepKind::warmup, 0, counts.full},
              {StepKind::round, 0, counts.rounds},
              {StepKind::compression, 0, counts.onebit},
              {StepKind::silent, 0, counts.silent}};
    }
    case OptimizerType::galore_adamw8bit: {
      const std::int64_t refreshing = (steps + galore_gap - 1) / galore_gap;
      return {{StepKind::uniform, 0, steps - refreshing}, {StepKind::refresh, 0, refreshing}};
    }
    default:
      return {{StepKind::uniform, 0, steps}};
  }
}

// Phases without the steps before a checkpoint.
void drop_first(std::int64_t steps, std::vector<SeqLenPhase>& phases) {
  while (!phases.empty() && steps >= phases.front().steps) {
    steps -= phases.front().steps;
    phases.erase(phases.begin());
  }
  if (!phases.empty()) phases.front().steps -= steps;
}

}  // namespace

// Interval by interval, since a run may have 10^9 steps: of those after `from` up to `to`,
// to / interval - from / interval are multiples of the interval. The dry run was step 1.
ZeroOneSteps zero_one_steps(const OnebitSchedule& schedule, std::int64_t steps) {
  ZeroOneSteps counts;
  // Frozen at the end of the first step beyond var_freeze_step, of which the dry run is none.
  const std::int64_t last = steps + 1;
  const std::int64_t frozen =
      std::min(steps, std::max<std::int64_t>(1, schedule.var_freeze_step)) + 1;
  const std::int64_t updates = schedule.var_update_scaler;  // at each interval
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
    // The longest interval, or one that no step meets, lasts to the end.
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

std::vector<SeqLenPhase> lengths_of(const TrainingPlan& training) {
  if (!training.recipe.curriculum) return {{training.seq_len, training.steps}};
  std::vector<SeqLenPhase> lengths =
      length_phases(*training.recipe.curriculum, training.steps_done + training.steps);
  for (SeqLenPhase& phase : lengths) phase.seq_len = std::min(phase.seq_len, training.seq_len);
  drop_first(training.steps_done, lengths);
  return lengths;
}

std::vector<Stage> stages_of(const TrainingPlan& training) {
  const std::vector<SeqLenPhase> lengths = lengths_of(training);
  std::vector<Stage> stages;
  // Both lists cover the run; walk them side by side. 0/1 Adam interleaves its kinds, so with a
  // curriculum its kinds are taken in turn, which only shifts steps between lengths.
  std::size_t phase = 0;
  std::int64_t left_in_phase = lengths.empty() ? 0 : lengths[0].steps;
  for (Stage kind : kinds_of(training)) {
    while (kind.steps > 0 && phase < lengths.size()) {
      const std::int64_t steps = std::min(kind.steps, left_in_phase);
      stages.push_back({kind.kind, lengths[phase].seq_len, steps});
      kind.steps -= steps;
      left_in_phase -= steps;
      if (left_in_phase == 0 && ++phase < lengths.size()) left_in_phase = lengths[phase].steps;
    }
  }
  return stages;
}

}  // namespace lambcast
