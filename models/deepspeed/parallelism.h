// Sections that divide the model or its activations over ranks, or enable recomputation, as what-if
// keys. Settings that cannot be modelled are refused, since the forecast would be of another run.
//
//   pipeline                  stages sets pp; activation_checkpoint_interval 1 sets recompute full,
//                             other intervals are refused
//   tensor_parallel           autotp_size or tp_size set tp
//   zero_optimization         at stage 3: zero_hpz_partition_size sets secondary_ranks,
//                             zero_quantized_weights and _gradients the keys of these names,
//                             mics_shard_size shard_ranks (ZeRO++ arXiv:2306.10209, MiCS
//                             arXiv:2205.00119); at every stage except 0, offload_optimizer to the
//                             host sets the key of that name
//   sequence_parallel_size    sets cp: Ulysses
//   expert_parallel           if enabled: autoep_size sets ep, expert_tensor_parallel_size etp,
//                             use_grouped_mm (on by default) one kernel for a rank's experts,
//                             without a capacity; use_data_before_expert_parallelism the rank order
//   activation_checkpointing  states how a script recomputes, not whether it does: refused if it
//                             reduces the number of checkpoints (number_checkpoints). For runs with
//                             --recompute full, partition_activations sets the key of that name,
//                             and cpu_checkpointing sets offload_activations
//
// Source: DeepSpeed 0.16.5, runtime/config.py (get_pipeline_config),
// runtime/tensor_parallel/config.py, runtime/activation_checkpointing/config.py; for experts 0.19,
// module_inject/auto_ep_config.py and docs/_pages/config-json.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/deepspeed/section.h"

namespace lambcast::deepspeed {

// Returns the what-if keys with their values. Throws Error naming a key of `root` that is not
// modelled; adds findings on others.
std::vector<std::pair<std::string, std::string>> read_parallelism(const Section& root);

}  // namespace lambcast::deepspeed
