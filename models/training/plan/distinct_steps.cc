#include <algorithm>
#include <utility>

#include "models/training/plan/distinct_steps.h"

namespace lambcast {
namespace {

// Whether the first step is a dry run, as it is for a 1-bit optimizer without a wrapper.
bool begins_with_dry_run(const Recipe& recipe) {
  return is_onebit(recipe.optimizer) && wrapper_of(recipe) == Wrapper::none;
}

StepPhases phases_of(const TrainingPlan& training) {
  const Recipe& recipe = training.recipe;
  const std::int64_t before =
      std::clamp<std::int64_t>(training.exchange.start - training.steps_done, 0, training.steps);
  StepPhases phases =
      model_of(training.optimizer())
          .phases({.steps = training.steps - before,
                   .dry_run = begins_with_dry_run(recipe),
                   .warmup = warmup_steps(recipe) - training.steps_done,
                   .steps_per_exchange = steps_per_exchange(training.exchange),
                   .onebit = recipe.onebit,
                   // A flat vector has no matrix to decompose.
                   .refresh_gap = training.flattens() ? 0 : recipe.projection.update_proj_gap});
  if (before > 0) phases.insert(phases.begin(), {StepKind::warmup, before});
  return phases;
}

// Removes the first `steps` steps, those before a checkpoint, from the phases.
template <typename Phase>
void drop_first(std::int64_t steps, std::vector<Phase>& phases) {
  while (!phases.empty() && steps >= phases.front().steps) {
    steps -= phases.front().steps;
    phases.erase(phases.begin());
  }
  if (!phases.empty()) phases.front().steps -= steps;
}

// Position in a list of phases that covers the run.
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
  std::int64_t done_ = 0;  // steps of the current phase
};

}  // namespace

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

// The optimizer's phases, the sequence lengths and the batches each cover the run, and are
// traversed in parallel. 0/1 Adam interleaves its step kinds; with a curriculum or a ramp they are
// assumed to follow one another, which only moves steps between shapes.
std::vector<DistinctStep> distinct_steps(const TrainingPlan& training) {
  const std::int64_t at_once = training.batch.train / std::max<std::int64_t>(1, training.batch.gas);
  std::vector<DistinctStep> all;
  Walk lengths(lengths_of(training));
  Walk batches(batches_of(training));
  for (StepPhase phase : phases_of(training)) {
    while (phase.steps > 0 && !lengths.ended() && !batches.ended()) {
      const std::int64_t steps = std::min({phase.steps, lengths.left(), batches.left()});
      const std::int64_t gas = training.ramp ? batches.now().batch / at_once : training.batch.gas;
      all.push_back({phase.kind, lengths.now().seq_len, steps, gas, phase.local});
      phase.steps -= steps;
      lengths.go(steps);
      batches.go(steps);
    }
  }
  return all;
}

bool precedes_exchange(const TrainingPlan& training, const DistinctStep& step) {
  return step.kind == StepKind::warmup && !is_onebit(training.optimizer()) &&
         training.exchange != Exchange{};
}

Batch batch_in(Batch batch, const DistinctStep& step) {
  if (step.gas == 0 || step.gas == batch.gas) return batch;
  batch.train = batch.train / batch.gas * step.gas;
  batch.gas = step.gas;
  return batch;
}

TrainingPlan in_step(const TrainingPlan& training, const DistinctStep& step) {
  TrainingPlan now = training;
  now.batch = batch_in(training.batch, step);
  if (precedes_exchange(training, step)) now.exchange = {};
  return now;
}

}  // namespace lambcast
