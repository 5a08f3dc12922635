// Finds keys whose value does not change a forecast, and names the limit that applies instead.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Relative spread below which values count as equal; it is rounding error.
inline constexpr double flat_spread = 1e-6;

// Returns whether all numbers are the same within rounding. NaN is the same only as NaN.
bool is_flat(std::span<const double> values);

// Returns the limits that keep another value of `key` from having an effect on `training`. Each is
// a sentence without a full stop. Empty if none is known.
std::vector<std::string> limits_of_key(const std::string& key, const TrainingPlan& training);

// Returns "KEY moves nothing here: LIMIT.". If no limit is known, it names the largest part of the
// step.
std::string flat_key_text(const std::string& key, const TrainingPlan& training);

// Returns the largest part of the mean step, which a change would have to shorten: "compute is 85 %
// of the mean step".
std::string largest_part_text(const TrainingPlan& training);

}  // namespace lambcast
