// Colossal-AI's booster plugins and the optimizers that they run, as listed in its page on
// distributed optimizers. Each cell states what the plugin's code does:
//
//                      hybrid_parallel  low_level_zero  torch_ddp  gemini   moe_hybrid
//   distributed_lamb   runs             runs            runs       refused  refused
//   galore_adamw8bit   ZeRO refused     refused         runs       refused  refused
//   adafactor, came    runs             runs, warned    runs       refused  refused
//   others             run              run             run        refused  refused
//
// hybrid_parallel supports tensor and pipeline parallelism and ZeRO 0 to 2, low_level_zero only
// ZeRO 1 or 2, torch_ddp neither. Gemini's chunks and the expert groups of moe_hybrid are not
// modelled for any optimizer.
//
// Sources: Colossal-AI docs/source/en/features/distributed_optimizers.md;
// booster/plugin/{hybrid_parallel,low_level_zero,gemini,moe_hybrid_parallel}_plugin.py;
// nn/optimizer/distributed_{adafactor,came}.py.
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

const std::vector<std::string>& plugin_names();

// Adds the plugin's defaults for keys that are not given: framework colossalai, and ZeRO stage 1
// for low_level_zero.
void add_plugin_defaults(WhatIf& what_if);

// Limits the layout to the divisions and the sharding that the plugin supports. Sets
// Parallelism::sums_columns: the behaviour of low_level_zero's optimizers without a tensor-parallel
// group.
void restrict_to_plugin(const Words& words, Parallelism& how);

// Checks the run against the plugin. Throws Error (usage) if the plugin does not run it; returns
// findings on unexpected behaviour. Colossal-AI without a plugin runs as with hybrid_parallel;
// other frameworks have none.
std::vector<Finding> check_plugin(const Words& words, const TrainingPlan& training);

}  // namespace lambcast
