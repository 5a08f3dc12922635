// The points of a small sweep side by side for people: what varies, and what came of it. First the
// answer in words: the fastest and the cheapest for equal work (equal_work.h), and whether
// compression pays (verdict.h).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/finding_tally.h"
#include "experiments/sweep_points.h"

namespace lambcast {

// `rows` are those of results.csv (result_row.h), one a point, in order; `findings` those of all
// points, where they are to be told below the table.
std::string sweep_table(const SweepPoints& points, const std::vector<std::string>& rows,
                        const FindingTally& findings = {});
// Of the results.csv of a folder.
std::string sweep_table(const SweepPoints& points, const std::filesystem::path& folder);

}  // namespace lambcast
