// How a forecast came about, for people who want to check it: what a step does (plan), what each of
// its operations costs and how far that may be off, the calls inside passes one by one (prices),
// and what the program did to find out (stats).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/training/training_plan.h"

namespace lambcast {

const std::vector<std::string>& explanation_names();  // "plan", "prices", "stats"

// One table for each distinct step of the run. Throws Error (usage) for any other name.
std::string explain(const TrainingPlan& training, std::string_view what);

}  // namespace lambcast
