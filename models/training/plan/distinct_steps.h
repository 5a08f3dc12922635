// A run of thousands of steps is simulated by its distinct steps, each once: the optimizer's kinds
// of steps times the sequence lengths of a curriculum times the batches of a ramp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Consecutive optimizer steps that are identical.
struct DistinctStep {
  StepKind kind = StepKind::uniform;
  std::int64_t seq_len = 0;
  std::int64_t steps = 0;
  std::int64_t gas = 0;  // micro batches of a ramp's batch; 0: the plan's number
  bool local = false;    // a local step, between two exchanges

  bool sums_gradients() const { return !local && lambcast::sums_gradients(kind); }
  bool operator==(const DistinctStep&) const = default;
};

// Returns the run's sequence lengths and batches in order, with the number of steps of each. A
// checkpoint contains the step count, so a curriculum and a ramp continue from the previous run.
std::vector<SeqLenPhase> lengths_of(const TrainingPlan& training);
std::vector<BatchPhase> batches_of(const TrainingPlan& training);

// Returns the number of samples in all steps.
std::int64_t samples_of(const TrainingPlan& training);

// Returns the distinct steps of the run and how often each occurs; they add up to training.steps.
//
//   adam, lamb         uniform
//   onebit_adam, _lamb warmup: freeze_step - 1 updates with fp16 (warmup_steps), counting those
//                      before a checkpoint, then compression
//   zero_one_adam      warmup (full-precision), rounds (1-bit, before the freeze), compression
//                      (synchronisations after it) and silent steps, counted by replaying the
//                      policy of zoadam.py
//   galore_adamw8bit   uniform, and refresh: the first step and every update_proj_gap-th after it
//   local:H            silent, except for every H-th step; a refresh in between is local
//   "/ start N"        warmup: the first N steps, before the exchange begins
std::vector<DistinctStep> distinct_steps(const TrainingPlan& training);

// Returns whether the step is one of those before the run's exchange begins.
bool precedes_exchange(const TrainingPlan& training, const DistinctStep& step);

// Return the batch of a distinct step, given the run's batch, and the run with that batch and with
// the exchange of the step.
Batch batch_in(Batch batch, const DistinctStep& step);
TrainingPlan in_step(const TrainingPlan& training, const DistinctStep& step);

}  // namespace lambcast
