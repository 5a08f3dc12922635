// The report of a sweep as text. Everything that comes from results or manifest is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/drawing.h"
#include "experiments/report/point.h"
#include "sim/base/csv.h"

namespace lambcast::report {

// The table on the page ends here; results.csv has them all.
inline constexpr std::size_t most_rows = 2000;

// manifest.json for people: warnings first, then everything in it, whatever its shape. Throws
// Error naming the file when it is no JSON object.
std::string manifest_html(std::string_view manifest, const std::string& file);

// `provenance` is HTML; `notice` is text, shown above the figures when not empty.
std::string page_html(const csv::Table& table, const std::vector<Point>& points,
                      const std::vector<Drawing>& drawings, const std::string& provenance,
                      const std::string& notice);

}  // namespace lambcast::report
