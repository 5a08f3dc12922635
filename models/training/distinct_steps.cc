#include <algorithm>
#include <utility>

#include "models/training/distinct_steps.h"

namespace lambcast {
namespace {

// Without a wrapper the first step of a 1-bit optimizer is its dry run.
bool begins_with_dry_run(const TrainingPlan& training) {
  return is_onebit(training.optimizer()) && training.wrapper() == Wrapper::none;
}

// Of a run's steps those that compute GaLore's projections anew: the first and every `gap`-th after
// it; of them those that exchange, where only multiples of `every` do.
struct Refreshes {
  std::int64_t all = 0, exchanging = 0;
};
Refreshes refreshes_of(std::int64_t steps, std::int64_t gap, std::int64_t every) {
  Refreshes refreshes{(steps + gap - 1) / gap, 0};
  // Step 1 + gap k is one for a k in `every`, or for none.
  for (std::int64_t k = 0; k < std::min(every, refreshes.all); ++k)
    if ((1 + gap * k) % every == 0) refreshes.exchanging += 1 + (refreshes.all - 1 - k) / every;
  return refreshes;
}

// Steps of which some send nothing and some refresh; a plain run has one kind alone.
std::vector<DistinctStep> uniform_kinds(const TrainingPlan& training) {
  const std::int64_t steps = training.steps, every = steps_per_exchange(training.exchange);
  const std::int64_t sending = steps / every;
  Refreshes refreshes;
  if (training.optimizer() == OptimizerType::galore_adamw8bit && !training.flattens())
    refreshes = refreshes_of(steps, training.recipe.projection.update_proj_gap, every);
  const std::int64_t local = refreshes.all - refreshes.exchanging;
  return {{StepKind::silent, 0, steps - sending - local},
          {StepKind::uniform, 0, sending - refreshes.exchanging},
          {StepKind::refresh, 0, local, 0, true},
          {StepKind::refresh, 0, refreshes.exchanging}};
}

// The kinds in the order they occur; lengths as if there were no curriculum.
std::vector<DistinctStep> kinds_of(const TrainingPlan& training) {
  const std::int64_t steps = training.steps;
  const std::int64_t dry = begins_with_dry_run(training) ? 1 : 0;
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
    default:
      return uniform_kinds(training);
  }
}

// Phases without the steps before a checkpoint.
template <typename Phase>
void drop_first(std::int64_t steps, std::vector<Phase>& phases) {
  while (!phases.empty() && steps >= phases.front().steps) {
    steps -= phases.front().steps;
    phases.erase(phases.begin());
  }
  if (!phases.empty()) phases.front().steps -= steps;
}

// Walks phases that cover the run.
template <typename Phase>
class Walk {
 public:
  explicit Walk(std::vector<Phase> phases) : phases_(std::move(phases)) {}
  bool ended() const { return at_ == phases_.size(); }
  const Phase& now() const { return phases_[at_]; }
  std::int64_t left() const { return now().steps - done_; }
  void go(std::int64_t steps) {
    done_ += steps;
    if (done_ < now().steps) return;
    done_ = 0;
    ++at_;
  }

 private:
  std::vector<Phase> phases_;
  std::size_t at_ = 0;
  std::int64_t done_ = 0;  // of the phase
};

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

std::vector<BatchPhase> batches_of(const TrainingPlan& training) {
  const std::int64_t full = training.batch.train;
  if (!training.ramp) return {{full, training.steps}};
  std::vector<BatchPhase> batches =
      batch_phases(*training.ramp, full, training.steps_done + training.steps);
  drop_first(training.steps_done, batches);
  return batches;
}

std::int64_t samples_of(const TrainingPlan& training) {
  std::int64_t samples = 0;
  for (const BatchPhase& phase : batches_of(training)) samples += phase.batch * phase.steps;
  return samples;
}

// The lists cover the run; they are walked side by side. 0/1 Adam interleaves its kinds, so with a
// curriculum or a ramp its kinds are taken in turn, which only shifts steps between shapes.
std::vector<DistinctStep> distinct_steps(const TrainingPlan& training) {
  const std::int64_t at_once = training.batch.train / std::max<std::int64_t>(1, training.batch.gas);
  std::vector<DistinctStep> all;
  Walk lengths(lengths_of(training));
  Walk batches(batches_of(training));
  for (DistinctStep kind : kinds_of(training)) {
    while (kind.steps > 0 && !lengths.ended() && !batches.ended()) {
      const std::int64_t steps = std::min({kind.steps, lengths.left(), batches.left()});
      const std::int64_t gas = training.ramp ? batches.now().batch / at_once : training.batch.gas;
      all.push_back({kind.kind, lengths.now().seq_len, steps, gas, kind.local});
      kind.steps -= steps;
      lengths.go(steps);
      batches.go(steps);
    }
  }
  return all;
}

TrainingPlan in_step(const TrainingPlan& training, const DistinctStep& step) {
  TrainingPlan now = training;
  if (step.gas == 0 || step.gas == training.batch.gas) return now;
  now.batch.gas = step.gas;
  now.batch.train = training.batch.train / training.batch.gas * step.gas;
  return now;
}

}  // namespace lambcast
