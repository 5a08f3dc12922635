// Advice for all combinations of the values of some keys: at which batch size, on which cluster and
// up to how many GPUs compression pays.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/advise/advice.h"
#include "experiments/scenario/scan.h"

namespace lambcast {

struct AdvicePoint {
  std::vector<std::string> varied;  // one value per axis
  std::optional<Advice> advice;
  std::string refused;  // why the point has no advice
};

struct AdviceList {
  std::vector<Axis> axes;
  std::vector<AdvicePoint> points;
  std::optional<std::int64_t> common_steps;  // the length of every run (common_length.h)
};

// Returns the advice for every combination of the axes; the last axis changes fastest. Throws Error
// (usage) for a value that is invalid in every combination.
AdviceList advise_all(const WhatIf& what_if, const std::vector<Axis>& axes, Catalog& catalog);

// Formats the list as text with a table, as a JSON object with the advice of each point, and as CSV
// with one row per point and implementation of the kernels.
std::string advice_list_text(const AdviceList& list);
std::string advice_list_json(const AdviceList& list);
std::string advice_list_csv(const AdviceList& list);

}  // namespace lambcast
