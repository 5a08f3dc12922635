// From what a user said to a Training: flags, sweep points and a DeepSpeed file say the same things
// in the same words, and every user error is raised here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/catalog.h"
#include "models/finding.h"
#include "models/training/training.h"

namespace lambcast {

// One what-if as text, by key: the flag's name with '_' for '-', or a dotted key that starts with
// "cluster.", "model." or "run." (what --set changes).
//
//   config model cluster device gpus nodes gpus_per_node optimizer backend cuda_aware kernels
//   micro_batch grad_accum global_batch seq_len steps samples freeze_step precision zero_stage
//   overlap network symmetry tp cp pp ep
//   interleave order sequence_parallel pipeline_schedule recompute framework attention
//   tensor_overlap fp32_gradients fusion split shard_ranks full_all_reduce
//
// freeze_step may be a share of the steps ("16.7%"); samples gives the steps as samples over global
// batch, rounded up; both, where they agree. One of config, model, cluster and device may be "-",
// stdin.
using WhatIf = std::map<std::string, std::string, std::less<>>;

// The keys above, for help texts and "did you mean".
const std::vector<std::string>& what_if_keys();

struct Scenario {
  Training training;
  std::vector<Finding> findings;
  WhatIf asked;  // what it was resolved from
};

// Throws Error (usage) for what cannot be read or cannot run.
Scenario resolve(const WhatIf& what_if, Catalog& catalog);

// What every output says of a training, in the words of the keys above.
std::string_view kernels_of(const Training& training);    // "deepspeed", "nvidia", "fused"
std::string_view precision_of(const Training& training);  // "fp16", "bf16", "fp32"
std::string_view overlap_of(const Training& training);    // "none", "ddp", "zero"
// Where compression starts: freeze_step, var_freeze_step of 0/1 Adam; plain optimizers have none.
std::optional<std::int64_t> freeze_step_of(const Training& training);

}  // namespace lambcast
