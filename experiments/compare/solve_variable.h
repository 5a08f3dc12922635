// The unknown of `solve`: one number of a question, its default range, and the question for each of
// its values.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "experiments/scenario/scenario.h"

namespace lambcast {

struct Variable {
  std::string key;
  bool whole = false;
  double low = 0, high = 0;  // both ends are valid values
  double unit = 1;           // whole numbers are multiples of this unit
  std::function<std::string(double)> words;
  std::function<TrainingPlan(double)> at;  // throws Error (usage) if the value cannot run
};

// Returns the unknown for `key`. `low` and `high` replace the ends of its usual range. Throws Error
// (usage) for an unknown key, a key that is not a number, and an invalid range. Keeps a reference
// to the catalog.
Variable variable_of(const std::string& key, const WhatIf& what_if,
                     const std::optional<std::string>& low, const std::optional<std::string>& high,
                     Catalog& catalog);

}  // namespace lambcast
