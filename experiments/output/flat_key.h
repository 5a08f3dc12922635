// Keys whose values leave a forecast as it is, and the limit that holds in their place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Relative spread of values below which they count as the same: differences of rounding.
inline constexpr double flat_spread = 1e-6;

// Returns whether all numbers are the same within rounding. NaN counts as a value of its own.
bool is_flat(std::span<const double> values);

// Returns the limits that keep another value of `key` from having an effect on `training`, each as
// a sentence without its full stop; empty if none is known.
std::vector<std::string> limits_of_key(const std::string& key, const TrainingPlan& training);

// "KEY moves nothing here: LIMIT."; names what the step consists of if no limit is known.
std::string flat_key_text(const std::string& key, const TrainingPlan& training);

// "compute is 85 % of the mean step": the part that a change of any key would have to shorten.
std::string largest_part_text(const TrainingPlan& training);

}  // namespace lambcast
