// Number of optimizer steps of a run, and the step at which compression starts.
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

// Keys that give the length of a run; each replaces the others.
inline constexpr std::array<const char*, 3> length_keys{"steps", "samples", "tokens"};
bool is_length(std::string_view key);
// Returns whether the question gives the length of its run.
bool gives_length(const WhatIf& question);

// Returns the share of a run that published recipes warm up:
//   1-bit LAMB  1,000 of 5,993 steps (BERT-Large, batch 65,536, the run of the 1-bit LAMB paper)
//   1-bit Adam  15 % (DeepSpeed's 1-bit Adam blog: 1 / (w + (1 - w) / 16) of the volume, w = 15 %)
//   0/1 Adam    variance updated for 12,500 of 150,000 steps (DeepSpeedExamples, bing_bert)
double published_warmup_share(OptimizerType type);

// Returns the freeze step given by the flag, else by the file; nothing if it is given as a share.
std::optional<std::int64_t> freeze_step_given(const Words& words,
                                              std::optional<std::int64_t> of_file);

// Returns the freeze step that determines the length of a run if no flag gives the length. The
// file's value comes first, so that a flag with another freeze step leaves the length unchanged.
std::optional<std::int64_t> deciding_freeze_step(const Words& words,
                                                 std::optional<std::int64_t> of_file);

// Returns the assumed number of steps of a run without a given length: the freeze step is the
// published share of it. At least 1000. A run that ended at freeze_step would not compress at all.
std::int64_t default_steps(OptimizerType type, std::optional<std::int64_t> freeze_step);

// Returns --steps, or --samples over the batch, along a ramp (training.ramp) that starts at
// training.steps_done. --tokens assume samples of one length, which a curriculum changes. If none
// of them is given, the length is default_steps(), and the finding `steps-assumed` states it.
// Points of a list share one length (common_length.h).
std::int64_t choose_steps(const Words& words, const TrainingPlan& training,
                          std::optional<std::int64_t> freeze_step_of_file,
                          std::vector<Finding>& findings);

// Returns the steps before the checkpoint that the run loads. 0 for 0/1 Adam, whose policy restarts
// when a checkpoint is loaded.
std::int64_t choose_steps_done(const Words& words, OptimizerType optimizer);

// Returns the ramp of --rampup-batch-size, which ends at training.batch.
std::optional<BatchRamp> choose_ramp(const Words& words, std::int64_t global_batch);

// Throws Error (usage) for batches of the ramp that do not divide over the ranks, and adds a note
// on the part of the ramp inside the run.
void check_ramp(const TrainingPlan& training, std::vector<Finding>& findings);

// Returns --freeze-step, given as a step or as a share of training.steps.
std::optional<std::int64_t> choose_freeze_step(const Words& words, const TrainingPlan& training);

}  // namespace lambcast
