// Reads results.csv for the report: once, row by row, in bounded memory. Statistics of all rows are
// updated meanwhile (tally.h). All rows are kept if there are few (kept_rows.h), else a part of
// them, and the report states which.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "experiments/report/kept_rows.h"
#include "experiments/report/listing.h"
#include "experiments/report/point.h"
#include "experiments/report/summary.h"
#include "sim/base/csv_reader.h"

namespace lambcast::report {

// The largest number of points of a sweep.
inline constexpr std::size_t most_points = 10'000'000;

// Sources and interval widths of the rows that ran.
struct Grounds {
  std::size_t calibrated = 0, extrapolated = 0;  // rows by the source of their collective times
  // Rows by the interval half-width in whole percent, for the kind of step with the widest
  // interval.
  std::map<double, std::size_t> below_percent, above_percent;
};

// Results of a sweep. Not copyable, since the summary points into the points.
struct Results {
  Results(Listing rows) : listing(std::move(rows)) {}
  Results(Results&&) = default;

  std::vector<Point> points;  // all rows, or those that `listing` keeps
  Listing listing;
  Grounds grounds;
  Summary summary;
};

// Reads the results. Throws Error (usage) naming file, line and column for a missing column, a
// field that is not a number or is out of range (0 samples a second), and for more rows than a
// sweep may have.
Results read_results(csv::Reader reader, std::size_t most_bytes = KeptRows::most_bytes);

}  // namespace lambcast::report
