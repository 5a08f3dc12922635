// Sections that divide the model or its activations among ranks, or recompute, in the words of
// what-ifs; what the program cannot follow is refused, since a forecast without it would be of
// another run.
//
//   pipeline                  stages gives pp, activation_checkpoint_interval 1 recompute full;
//   other
//                             intervals are refused
//   tensor_parallel           autotp_size or tp_size give tp
//   zero_optimization         at stage 3: zero_hpz_partition_size gives secondary_ranks,
//                             zero_quantized_weights and _gradients the keys of these names,
//                             mics_shard_size shard_ranks (ZeRO++ arXiv:2306.10209, MiCS
//                             arXiv:2205.00119); at every stage but 0, offload_optimizer to the
//                             host gives the key of that name
//   sequence_parallel_size    gives cp: Ulysses
//   expert_parallel           where enabled: autoep_size gives ep, expert_tensor_parallel_size etp,
//                             use_grouped_mm (on by default) one kernel for a rank's experts, to no
//                             capacity; use_data_before_expert_parallelism an order of ranks
//   activation_checkpointing  says how a script that recomputes does it, not whether: refused where
//                             it copies checkpoints to the host (cpu_checkpointing) or spaces them
//                             (number_checkpoints); partition_activations gives the key of that
//                             name, of runs with --recompute full and tensor parallelism
//
// Source: DeepSpeed 0.16.5, runtime/config.py (get_pipeline_config),
// runtime/tensor_parallel/config.py, runtime/activation_checkpointing/config.py; of experts 0.19,
// module_inject/auto_ep_config.py and docs/_pages/config-json.md.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/deepspeed/section.h"

namespace lambcast::deepspeed {

// By key of what-ifs. Throws Error naming the key of `root` there is no model of; adds findings
// about the others.
std::vector<std::pair<std::string, std::string>> read_parallelism(const Section& root);

}  // namespace lambcast::deepspeed
