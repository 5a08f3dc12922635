// Formats a sensitivity as text (an answer and a tornado), JSON (schema version 1) and CSV.
#pragma once

#include <string>

#include "experiments/compare/sensitivity.h"

namespace lambcast {

// Settings of the table; CSV and JSON always have all inputs and keys.
struct SensitivityView {
  bool all = false;   // also inputs without effect
  bool keys = false;  // keys as --set accepts them, in place of plain names
};

std::string sensitivity_table(const Sensitivity& sensitivity, const SensitivityView& view = {});
std::string sensitivity_json(const Sensitivity& sensitivity);
std::string sensitivity_csv(const Sensitivity& sensitivity);

}  // namespace lambcast
