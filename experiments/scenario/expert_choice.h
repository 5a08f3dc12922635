// Reads from a what-if how experts are divided and reached (models/training/plan/expert_plan.h).
#pragma once

#include "experiments/scenario/words.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// The keys of experts, in addition to ep:
//
//   etp expert_dispatch capacity_factor imbalance expert_overlap expert_kernels
//   expert_routing
//
// DeepSpeed fills every expert to its capacity (factor 1); other frameworks drop no tokens. Reads
// framework and layout of `how`. Throws Error (usage), naming the rule, for keys without experts
// and optimizers that would mix them.
ExpertUse choose_experts(const Words& words, const ModelShape& model, OptimizerType optimizer,
                         const Parallelism& how);

}  // namespace lambcast
