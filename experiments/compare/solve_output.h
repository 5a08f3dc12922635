// Formats a solution as text with the values around it, as JSON and as CSV.
#pragma once

#include <string>

#include "experiments/compare/solve.h"

namespace lambcast {

std::string solution_table(const Solution& solution);
std::string solution_json(const Solution& solution);
// Returns one row per value that was forecast.
std::string solution_csv(const Solution& solution);

}  // namespace lambcast
