// A run of thousands of steps is simulated as its distinct steps, each once: kinds of an
// optimizer's steps times the lengths of a curriculum times the batches of a ramp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Consecutive optimizer steps that are all alike.
struct DistinctStep {
  StepKind kind = StepKind::uniform;
  std::int64_t seq_len = 0;
  std::int64_t steps = 0;
  std::int64_t gas = 0;  // micro batches of a ramp's batch; 0: as many as the plan has
  bool local = false;    // between two exchanges of local steps

  bool sums_gradients() const { return !local && lambcast::sums_gradients(kind); }
  bool operator==(const DistinctStep&) const = default;
};

// The lengths of the run's sequences in order, and its batches, with the steps of each. A
// checkpoint carries the count of steps, so that a curriculum and a ramp go on where the run before
// left them.
std::vector<SeqLenPhase> lengths_of(const TrainingPlan& training);
std::vector<BatchPhase> batches_of(const TrainingPlan& training);

// The samples of all its steps.
std::int64_t samples_of(const TrainingPlan& training);

// The distinct steps of the run and how often each occurs; they add up to training.steps.
//
//   adam, lamb         uniform
//   onebit_adam, _lamb warmup: freeze_step - 1 updates with fp16 (warmup_steps), those
//                      before a checkpoint among them, then compression
//   zero_one_adam      warmup (full-precision), rounds (1-bit, before the freeze), compression
//                      (synchronisations after it) and silent steps, counted by replaying the
//                      policy of zoadam.py
//   galore_adamw8bit   uniform, and refresh: the first step and every update_proj_gap-th after it
//   local:H            silent, except for every H-th step; a refresh in between is local
std::vector<DistinctStep> distinct_steps(const TrainingPlan& training);

// The batch of such a step, of a run with this one, and the run as it is in it.
Batch batch_in(Batch batch, const DistinctStep& step);
TrainingPlan in_step(const TrainingPlan& training, const DistinctStep& step);

}  // namespace lambcast
