// Reads from a what-if how its model is divided over ranks (models/training/plan/parallelism.h).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// The keys that select more than data parallelism with DeepSpeed's stages 0 to 2, for help texts:
//
//   tp cp pp interleave order sequence_parallel pipeline_schedule recompute framework attention
//   tensor_overlap send_overlap fp32_gradients fusion eager_loss split shard_ranks shard_groups
//   partition_activations full_all_reduce offload_optimizer shard_handling_us secondary_ranks
//   quantized_weights quantized_gradients ep lora_rank lora_targets fp8_attention
//   fp8_activation_input context_exchange gradient_bucket cuda_graphs fp8_weight_gather
//   state_types
//
// and those of expert_choice.h.
//
// A key set to its default (an axis of 1, --framework deepspeed, a switch that is off) selects no
// layout, and the forecast stays the same. A framework with only data parallelism (pytorch, bagua,
// tensorflow, ...) selects none for a model without transformer blocks. Keys that divide nothing
// under DeepSpeed (recompute, attention, fusion, ...) are read from the layout that is returned,
// and become pass options (whole_model.h).
//
// Returns nothing if no key selects a layout. Reads training's model, device, gpus and
// configuration; dp follows from the GPUs. Throws Error (usage), naming the rule, for invalid
// layouts.
std::optional<Parallelism> choose_parallelism(const Words& words, const TrainingPlan& training);

// Returns the layout that the keys describe, whether or not they select one.
Parallelism described_layout(const Words& words, const TrainingPlan& training);

// Returns whether a key controls how ranks share states, which needs ZeRO.
bool is_of_zero(std::string_view key);

// Checks the layout against the model and the micro batches. Throws the errors and returns the
// other findings.
std::vector<Finding> check_parallelism(const TrainingPlan& training);

}  // namespace lambcast
