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
  double low = 0, high = 0;  // both are values it may have
  double unit = 1;           // whole numbers are multiples of it
  std::function<std::string(double)> words;
  std::function<TrainingPlan(double)> at;  // throws Error (usage) where it cannot run
};

// `low` and `high` replace the ends of the usual range. Throws Error (usage) for a key that is none
// or no number, and for a range that is none. Keeps a reference to the catalog.
Variable variable_of(const std::string& key, const WhatIf& what_if,
                     const std::optional<std::string>& low, const std::optional<std::string>& high,
                     Catalog& catalog);

}  // namespace lambcast
