// Finding for DeepSpeed's dispatch of tokens to experts, if it costs more than the experts.
#pragma once

#include <optional>

#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns the finding if the dispatch takes more FLOPs than the experts. Products with one-hot
// tensors carry T tokens of h elements to S slots and back: 2 T S h FLOPs each, which grows with
// the square of the tokens, against 2 S h f for each matrix of an expert. They are
// einsum("sec,sm->ecm") and its counterpart in moe/sharded_moe.py (MOELayer.forward without
// use_tutel).
std::optional<Finding> find_one_hot_dispatch(const TrainingPlan& training);

}  // namespace lambcast
