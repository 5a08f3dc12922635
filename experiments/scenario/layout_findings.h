// Findings on a valid layout that differs from the framework's own behaviour, or in which a setting
// is treated as another one.
//
// Codes: warnings schedule-of-framework, sequence-of-framework, lamb-per-shard; notes
// attention-untimed, prefetch-below-matrix, passes-meet.
#pragma once

#include <vector>

#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns the findings on the layout. The training must have one.
std::vector<Finding> find_of_layout(const TrainingPlan& training);

}  // namespace lambcast
