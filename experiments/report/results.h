// results.csv as the report needs it: read once, row by row, and compactly, so that a million rows
// take seconds and less than half a gigabyte.
#pragma once

#include <vector>

#include "experiments/report/listing.h"
#include "experiments/report/point.h"
#include "sim/base/csv_reader.h"

namespace lambcast::report {

// As many as a sweep may have.
inline constexpr std::size_t most_points = 10'000'000;

// What the rows that ran rest on.
struct Grounds {
  std::size_t calibrated = 0, extrapolated = 0;  // rows, by what their collectives lie in
  // By how many percent a step of each row may be off: of its kinds of step the widest interval.
  std::vector<float> below_percent, above_percent;
};

struct Results {
  std::vector<Point> points;
  Listing listing;
  Grounds grounds;
};

// Throws Error (usage) naming file, line and column for a missing column, a field that is no number
// or one that no forecast has (0 samples a second), and for more rows than a sweep may have.
Results read_results(csv::Reader reader);

}  // namespace lambcast::report
