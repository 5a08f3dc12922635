// The points of a small sweep side by side for people: what varies, and what came of it.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep_points.h"

namespace lambcast {

// `rows` are those of results.csv (result_row.h), one a point, in order. A sentence, then the
// table.
std::string sweep_table(const SweepPoints& points, const std::vector<std::string>& rows);

}  // namespace lambcast
