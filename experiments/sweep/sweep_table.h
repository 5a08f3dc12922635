// The points of a small sweep side by side for people: what varies, and what came of it. First the
// answer in words: the fastest and the cheapest for equal work (equal_work.h), and whether
// compression pays (verdict.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/output/finding_tally.h"
#include "experiments/sweep/sweep_plan.h"

namespace lambcast {

// `rows` are those of results.csv (result_row.h), one per point, in order. `findings` are those of
// all points, if they are to be listed below the table.
std::string sweep_table(const SweepPlan& plan, const std::vector<std::string>& rows,
                        const FindingTally& findings = {});
// The same from the results.csv of a folder.
std::string sweep_table(const SweepPlan& plan, const std::filesystem::path& folder);

// Returns one line for each key that was varied without effect, with the limit that holds instead.
// The summary of a folder lacks them, as it keeps no keys.
std::string keys_without_effect(const SweepPlan& plan, const std::filesystem::path& folder);

}  // namespace lambcast
