// Reads the gradient exchange of a what-if, and checks it against ZeRO, the layout, the 1-bit
// optimizer, and the numbers of ranks and steps.
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Reads the exchange. The plan must have its optimizer, batch and layout. Throws Error (usage) at
// --exchange.
void choose_exchange(const Words& words, TrainingPlan& training, std::vector<Finding>& findings);

}  // namespace lambcast
