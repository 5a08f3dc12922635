// Writes flags and sweep keys that a DeepSpeed file can contain into the contents of the file. The
// one configuration then decodes into the neutral plan (models/deepspeed/recipe.h), and DeepSpeed's
// own rules check what would run. Without a file the configuration holds DeepSpeed's defaults.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/words.h"
#include "models/deepspeed/versions.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Adds the layout keys of the file that no flag sets.
void add_layout_of_file(WhatIf& asked, Catalog& catalog);

// Returns the versions of the run. --deepspeed-version is the same as deepspeed= of --versions;
// without either, the release that ran on that cluster.
deepspeed::Versions choose_versions(const Words& words, const Cluster& cluster,
                                    deepspeed::Setting<Version>& release);

// Sets the optimizer and the ZeRO stage. Afterwards `optimizer` is present.
void choose_optimizer(const Words& words, deepspeed::DeepSpeedConfig& config);

// Returns the precision of a run that does not state one. Decoders like Llama and mixtures of
// experts are trained in bf16 if the GPU supports it (the default of torchtitan, and of the
// examples of Megatron-LM: examples/llama, examples/mixtral). All other models are trained in fp16:
// V100 has no bf16, and DeepSpeed verifies its 1-bit optimizers only in fp16.
DataType usual_weights(const ModelShape& model, const Device& device, OptimizerType optimizer);
// Returns whether a flag or a DeepSpeed file states the precision.
bool states_precision(const Words& words);
void choose_precision(const Words& words, const TrainingPlan& training,
                      deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings);

// Sets the backend: from the flag, else the file, else the backend used by 1-bit optimizers on that
// cluster.
void choose_backend(const Words& words, const Cluster& cluster, deepspeed::DeepSpeedConfig& config,
                    std::vector<Finding>& findings);

// Determines the batch: flags first, then the file or its elasticity, until two of the three
// numbers are known. A flag that changes one number keeps the file's other numbers if possible. Two
// flags override elasticity completely.
Batch choose_batch(const Words& words, int gpus, int data_parallel,
                   deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings);

// Returns the overlap of gradient communication with the backward pass: ZeRO's own, or the plan's.
Overlap choose_overlap(const Words& words, std::int64_t micro_batches,
                       deepspeed::DeepSpeedConfig& config);

// Returns the freeze step that the file sets.
std::optional<std::int64_t> freeze_step_of_file(const deepspeed::DeepSpeedConfig& config);
void set_freeze_step(std::int64_t step, deepspeed::DeepSpeedConfig& config);
// Sets how the intervals of 0/1 Adam grow (models/recipe/recipe.h); flags override the file.
void choose_zero_one_policy(const Words& words, deepspeed::DeepSpeedConfig& config);

}  // namespace lambcast
