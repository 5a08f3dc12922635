// What users should know of a layout that may run: where it is not what the framework itself does,
// and where what was said counts as something else.
//
// Codes: warnings schedule-of-framework, sequence-of-framework, lamb-per-shard; notes
// attention-untimed, prefetch-below-matrix, priced-by-kernel.
#pragma once

#include <vector>

#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Of a training that has a layout.
std::vector<Finding> find_of_layout(const TrainingPlan& training);

}  // namespace lambcast
