// How many optimizer steps a run has, and from which of them on it compresses.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

inline constexpr std::int64_t max_steps = 1'000'000'000;

// The keys that say it, each in place of the others.
inline constexpr std::array<const char*, 3> length_keys{"steps", "samples", "tokens"};
bool is_length(std::string_view key);
// Returns whether the question gives the length of its run.
bool gives_length(const WhatIf& question);

// The share of the run that published recipes warm up:
//   1-bit LAMB  1,000 of 5,993 steps (BERT-Large, batch 65,536, the run of the 1-bit LAMB paper)
//   1-bit Adam  15 % (DeepSpeed's 1-bit Adam blog: 1 / (w + (1 - w) / 16) of the volume, w = 15 %)
//   0/1 Adam    variance updated for 12,500 of 150,000 steps (DeepSpeedExamples, bing_bert)
double published_warmup_share(OptimizerType type);

// Returns the freeze step that the flag gives, else that of the file; not a share of the run.
std::optional<std::int64_t> freeze_step_given(const Words& words,
                                              std::optional<std::int64_t> of_file);

// Returns the freeze step that decides the length of a run if no flag gives it. That of the file
// comes first, so that another freeze step leaves the length unchanged; else that of the flag.
std::optional<std::int64_t> deciding_freeze_step(const Words& words,
                                                 std::optional<std::int64_t> of_file);

// Returns the steps of a run whose length is not given: the run of which the freeze step is the
// published share, at least 1000 steps. A run as long as freeze_step would compress nothing.
std::int64_t default_steps(OptimizerType type, std::optional<std::int64_t> freeze_step);

// Returns --steps, or --samples over the batch, along a ramp (training.ramp) from
// training.steps_done on. --tokens fill samples of one length, which a curriculum changes. If none
// of them is given, the length is default_steps(), and the finding `steps-assumed` states it.
// Points of a list share one length (common_length.h).
std::int64_t choose_steps(const Words& words, const TrainingPlan& training,
                          std::optional<std::int64_t> freeze_step_of_file,
                          std::vector<Finding>& findings);

// The steps before the checkpoint that the run goes on from; none of 0/1 Adam, whose policy starts
// anew when a checkpoint is loaded.
std::int64_t choose_steps_done(const Words& words, OptimizerType optimizer);

// --rampup-batch-size on the way to training.batch.
std::optional<BatchRamp> choose_ramp(const Words& words, std::int64_t global_batch);

// Refuses batches of the ramp that ranks do not divide, and notes what the run has of it.
void check_ramp(const TrainingPlan& training, std::vector<Finding>& findings);

// --freeze-step, a step or a share of training.steps.
std::optional<std::int64_t> choose_freeze_step(const Words& words, const TrainingPlan& training);

}  // namespace lambcast
