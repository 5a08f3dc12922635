// Finds unused keys: keys that were given and have no effect on this run. They are reported, so
// that runs that differ only in such a key are not compared.
#pragma once

#include <vector>

#include "experiments/scenario/words.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns a note for each unused key. Values that switch something off (none, false, 0) have no
// note.
std::vector<Finding> find_unread_of_layout(const Words& words, const Parallelism& how);

// Returns notes on unused keys that any run accepts. The plan must be complete.
std::vector<Finding> find_unread(const Words& words, const TrainingPlan& training);

// Returns why a forecast of `training` does not read a value of `key`; empty if it may read it.
std::string why_unread(const std::string& key, const TrainingPlan& training);

}  // namespace lambcast
