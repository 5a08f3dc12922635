// Writes flags and sweep keys that a DeepSpeed file can contain into the contents of the file. The
// one configuration then decodes into the neutral plan (models/deepspeed/recipe.h), and DeepSpeed's
// own rules check what would run. Without a file the configuration holds DeepSpeed's defaults.
#pragma once

#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/words.h"
#include "models/deepspeed/versions.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Adds the layout keys of the file that no flag gives.
void add_layout_of_file(WhatIf& asked, Catalog& catalog);

// --deepspeed-version is the deepspeed= of --versions, else what ran on that cluster.
deepspeed::Versions choose_versions(const Words& words, const Cluster& cluster,
                                    deepspeed::Setting<Version>& release);

// Optimizer and ZeRO's stage; `optimizer` is present from then on.
void choose_optimizer(const Words& words, deepspeed::DeepSpeedConfig& config);

// The precision that a run uses where nothing states one. Decoders of Llama's kind and mixtures of
// experts are trained in bf16 where the GPU has it (the default of torchtitan, and what the
// examples of Megatron-LM pass: examples/llama, examples/mixtral). Everything else is trained in
// fp16: V100 has no bf16, and DeepSpeed verifies its 1-bit optimizers in fp16 alone.
DataType usual_weights(const ModelShape& model, const Device& device, OptimizerType optimizer);
// Whether a flag or a DeepSpeed file states the precision.
bool states_precision(const Words& words);
void choose_precision(const Words& words, const TrainingPlan& training,
                      deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings);

// A flag, else the file, else what 1-bit optimizers ran on that cluster.
void choose_backend(const Words& words, const Cluster& cluster, deepspeed::DeepSpeedConfig& config,
                    std::vector<Finding>& findings);

// Flags first, then what the file or its elasticity adds, until two of the three numbers are known:
// a flag that changes one number keeps the file's others as far as they can be kept. Two flags
// leave elasticity nothing to say, as if it were off.
Batch choose_batch(const Words& words, int gpus, int data_parallel,
                   deepspeed::DeepSpeedConfig& config, std::vector<Finding>& findings);

// Returns the overlap of gradient communication with the backward pass: ZeRO's own, or the plan's.
Overlap choose_overlap(const Words& words, deepspeed::DeepSpeedConfig& config);

// Returns the freeze step in the file.
std::optional<std::int64_t> freeze_step_of_file(const deepspeed::DeepSpeedConfig& config);
void set_freeze_step(std::int64_t step, deepspeed::DeepSpeedConfig& config);
// Sets how the intervals of 0/1 Adam grow (models/recipe/recipe.h); flags override the file.
void choose_zero_one_policy(const Words& words, deepspeed::DeepSpeedConfig& config);

}  // namespace lambcast
