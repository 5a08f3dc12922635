// Reads the keys of low-rank adapters of a what-if (models/shape/adapters.h).
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Reads lora_rank and lora_targets and adds the adapters to training's model. Also reads the
// optimizer, for a finding on what an exchange with fewer bits still saves. Throws Error (usage)
// for targets without a rank.
std::vector<Finding> choose_adapters(const Words& words, TrainingPlan& training);

}  // namespace lambcast
