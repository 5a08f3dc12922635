// From the words of a what-if to low-rank adapters on its model (models/shape/adapters.h).
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// The keys lora_rank and lora_targets: gives training's model adapters. Reads its optimizer too, to
// say what is left of an exchange of fewer bits. Throws Error (usage) for targets without a rank.
std::vector<Finding> choose_adapters(const Words& words, TrainingPlan& training);

}  // namespace lambcast
