// DeepSpeed's keys, so that a misspelt name is found. DeepSpeed ignores an unknown key; it is
// reported here and not refused, since scripts keep keys of their own in the file. In
// zero_optimization DeepSpeed permits no others (runtime/config_utils.py, extra="forbid").
#pragma once

#include <span>
#include <string>

namespace lambcast::deepspeed {

// Effect of a key on a forecast.
enum class Bearing {
  read,        // lambcast reads it
  silent,      // logging, checkpoints, data loading: no part of a step's time, or next to none
  unmodelled,  // changes what a step costs in a way lambcast has no model of
  precision_unmodelled,  // computes in other types than the ones that lambcast reads
  stage_3,               // only ZeRO stage 3 looks at it, and lambcast reads it there
  stage_3_unmodelled,    // only ZeRO stage 3 looks at it, where it changes what a step costs
};

struct KnownKey {
  const char* name;
  Bearing bearing;
};

// Sources: DeepSpeed 0.16.5 and 0.19.6, runtime/config.py, runtime/constants.py and the config.py
// of the blocks they include; keys of older releases that files still carry.
std::span<const KnownKey> top_level_keys();

// Of the blocks lambcast reads: runtime/zero/config.py, runtime/constants.py,
// runtime/precision_config.py, runtime/data_pipeline/constants.py, elasticity/constants.py (the
// documentation's prefer_large_batch is none), runtime/config.py (pipeline),
// runtime/tensor_parallel/config.py, module_inject/auto_ep_config.py (expert_parallel),
// runtime/activation_checkpointing/config.py.
std::span<const KnownKey> zero_keys();
// runtime/zero/offload_config.py
std::span<const std::string> offload_param_keys();
std::span<const std::string> offload_optimizer_keys();
std::span<const std::string> fp16_keys();
std::span<const KnownKey> bf16_keys();
std::span<const std::string> data_types_keys();
std::span<const std::string> curriculum_keys();
std::span<const std::string> schedule_keys();
std::span<const std::string> elasticity_keys();
std::span<const std::string> pipeline_keys();
std::span<const std::string> tensor_parallel_keys();
std::span<const std::string> tensor_parallel_group_keys();  // of the block inside: "tp"
std::span<const std::string> expert_parallel_keys();
std::span<const std::string> activation_checkpointing_keys();

}  // namespace lambcast::deepspeed
