// DeepSpeed's keys, for finding misspelt names. DeepSpeed ignores an unknown key; here it is
// reported but not refused, since scripts keep their own keys in the file. In zero_optimization
// DeepSpeed allows no other keys (runtime/config_utils.py, extra="forbid").
#pragma once

#include <span>
#include <string>

namespace lambcast::deepspeed {

// Effect of a key on a forecast.
enum class Bearing {
  read,                  // lambcast reads it
  silent,                // logging, checkpoints, data loading: hardly affects a step's time
  unmodelled,            // changes the cost of a step in a way that is not modelled
  precision_unmodelled,  // computes in types that lambcast does not read
  stage_3,               // affects only ZeRO stage 3, and lambcast reads it there
  stage_3_unmodelled,    // affects only ZeRO stage 3, whose cost it changes
};

struct KnownKey {
  const char* name;
  Bearing bearing;
};

// Sources: DeepSpeed 0.16.5 and 0.19.6, runtime/config.py, runtime/constants.py and the config.py
// of the included blocks; and keys of older releases that files still contain.
std::span<const KnownKey> top_level_keys();

// Keys of the blocks that lambcast reads: runtime/zero/config.py, runtime/constants.py,
// runtime/precision_config.py, runtime/data_pipeline/constants.py, elasticity/constants.py (without
// the documentation's prefer_large_batch, which does not exist), runtime/config.py (pipeline),
// runtime/tensor_parallel/config.py, module_inject/auto_ep_config.py (expert_parallel),
// runtime/activation_checkpointing/config.py.
std::span<const KnownKey> zero_keys();
// Keys of offloading. Source: runtime/zero/offload_config.py.
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
std::span<const std::string> tensor_parallel_group_keys();  // of its inner block "tp"
std::span<const std::string> expert_parallel_keys();
std::span<const std::string> activation_checkpointing_keys();

}  // namespace lambcast::deepspeed
