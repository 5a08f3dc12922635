// Formats a comparison as text (an answer and a table), JSON (schema version 1) and CSV.
#pragma once

#include <string>

#include "experiments/compare/comparison.h"

namespace lambcast {

std::string comparison_table(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);
std::string comparison_csv(const Comparison& comparison);

}  // namespace lambcast
