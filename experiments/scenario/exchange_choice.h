// The exchange asked for, read and checked against what it is to take the place of: ZeRO, a layout,
// a 1-bit optimizer, the numbers of ranks and steps.
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Throws Error (usage) at --exchange. Of a plan whose optimizer, batch and layout are known.
void choose_exchange(const Words& words, TrainingPlan& training, std::vector<Finding>& findings);

}  // namespace lambcast
