// A solution in words with the values around it, and for programs.
#pragma once

#include <string>

#include "experiments/compare/solve.h"

namespace lambcast {

std::string solution_table(const Solution& solution);
std::string solution_json(const Solution& solution);
// A row per value that was forecast.
std::string solution_csv(const Solution& solution);

}  // namespace lambcast
