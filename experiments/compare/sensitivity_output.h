// Sensitivities for people (an answer and a tornado) and for programs (JSON, schema version 1;
// CSV).
#pragma once

#include <string>

#include "experiments/compare/sensitivity.h"

namespace lambcast {

// Settings of the table; CSV and JSON always have all inputs and keys.
struct SensitivityView {
  bool all = false;   // those that move nothing too
  bool keys = false;  // the key of each in place of its name, as --set takes it
};

std::string sensitivity_table(const Sensitivity& sensitivity, const SensitivityView& view = {});
std::string sensitivity_json(const Sensitivity& sensitivity);
std::string sensitivity_csv(const Sensitivity& sensitivity);

}  // namespace lambcast
