// The common length of compared runs if no flag gives one.
//
// A question without --steps, --samples and --tokens assumes the length at which its freeze step is
// the published share of warm-up (run_length.h). If each point of a list of freeze steps had its
// own length, all would have the same share of warm-up, and so the same speed-up. Compared points
// therefore share one length:
//   - the freeze step of the base question decides (that of its DeepSpeed file), if it has one;
//   - else the largest freeze step listed, so that every point compresses;
//   - optimizers with different published shares share the longest of their runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/sweep/sweep_plan.h"

namespace lambcast {

// Returns the number of steps assumed for a question; nothing if the question gives its length.
std::optional<std::int64_t> assumed_length(const WhatIf& question, Catalog& catalog);

// Returns the length assumed for all questions; nothing if one of them gives its length.
std::optional<std::int64_t> common_length(const std::vector<WhatIf>& questions, Catalog& catalog);

// Returns the plan with the common length as a flag; its notes state it.
SweepPlan with_common_length(SweepPlan plan, Catalog& catalog);

// Returns " of 5993 steps (assumed)"; empty if a length is given.
std::string assumed_run_text(const std::optional<std::int64_t>& common_steps);

// Returns "--steps not given: every run has 5993 optimizer steps".
std::string common_length_text(std::int64_t steps);

}  // namespace lambcast
