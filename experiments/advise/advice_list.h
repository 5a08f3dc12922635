// The advice for every value of some keys: at which batch does compression pay, on which cluster,
// up to how many GPUs?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/advise/advice.h"
#include "experiments/scenario/scan.h"

namespace lambcast {

struct AdvicePoint {
  std::vector<std::string> varied;  // one value an axis
  std::optional<Advice> advice;
  std::string refused;  // why there is none
};

struct AdviceList {
  std::vector<Axis> axes;
  std::vector<AdvicePoint> points;
  std::optional<std::int64_t> common_steps;  // the length of every run (common_length.h)
};

// Returns the advice for every combination of the axes, the last one fastest. Throws Error (usage)
// for a value that is invalid in every combination.
AdviceList advise_all(const WhatIf& what_if, const std::vector<Axis>& axes, Catalog& catalog);

// In words and as a table; a JSON object with the advice of each point; a CSV row a point and
// implementation of the kernels.
std::string advice_list_text(const AdviceList& list);
std::string advice_list_json(const AdviceList& list);
std::string advice_list_csv(const AdviceList& list);

}  // namespace lambcast
