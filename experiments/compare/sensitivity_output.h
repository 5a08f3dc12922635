// Sensitivities for people (an answer and a tornado) and for programs (JSON, schema version 1;
// CSV).
#pragma once

#include <string>

#include "experiments/compare/sensitivity.h"

namespace lambcast {

// With `all`, what moves nothing too; CSV and JSON always have it.
std::string sensitivity_table(const Sensitivity& sensitivity, bool all);
std::string sensitivity_json(const Sensitivity& sensitivity);
std::string sensitivity_csv(const Sensitivity& sensitivity);

}  // namespace lambcast
