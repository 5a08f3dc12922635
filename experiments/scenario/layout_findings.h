// Findings on a layout that may run: it differs from what the framework itself does, or a setting
// counts as another one.
//
// Codes: warnings schedule-of-framework, sequence-of-framework, lamb-per-shard; notes
// attention-untimed, prefetch-below-matrix, passes-meet.
#pragma once

#include <vector>

#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Requires a training with a layout.
std::vector<Finding> find_of_layout(const TrainingPlan& training);

}  // namespace lambcast
