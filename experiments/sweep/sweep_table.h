// Formats the points of a small sweep as a table of varied keys and results. The answer comes
// first, in words: the fastest and the cheapest for equal work (equal_work.h), and whether
// compression pays (verdict.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/output/finding_tally.h"
#include "experiments/sweep/sweep_plan.h"

namespace lambcast {

// Formats the points. `rows` are rows of results.csv (result_row.h), one per point, in order.
// `findings` cover all points, if they are to be listed below the table.
std::string sweep_table(const SweepPlan& plan, const std::vector<std::string>& rows,
                        const FindingTally& findings = {});
// Formats the points of the results.csv in a folder.
std::string sweep_table(const SweepPlan& plan, const std::filesystem::path& folder);

// Returns one line for each varied key without effect, with the limit that applies instead. The
// summary of a folder lacks these lines, since it stores no keys.
std::string keys_without_effect(const SweepPlan& plan, const std::filesystem::path& folder);

}  // namespace lambcast
