// report.html as text: one file with nothing to load, so that it opens on machines without a
// network. Everything that comes from results or manifest is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/figure.h"
#include "experiments/report/point.h"
#include "sim/base/csv.h"

namespace lambcast::report {

// A figure and its picture; no picture where the figure is left out or gnuplot is absent.
struct Drawing {
  Figure figure;
  std::string svg;
};

// The table on the page ends here; results.csv has them all.
inline constexpr std::size_t most_rows = 2000;

std::string escaped(std::string_view text);

// An SVG file as a part of an HTML page: ids made unique by `name`, no XML prologue.
std::string inline_svg(std::string_view svg, std::string_view name, std::string_view title);

// manifest.json for people: warnings first, then everything in it, whatever its shape. Throws
// Error naming the file when it is no JSON object.
std::string manifest_html(std::string_view manifest, const std::string& file);

// `provenance` is HTML; `notice` is text, shown above the figures when not empty.
std::string page_html(const csv::Table& table, const std::vector<Point>& points,
                      const std::vector<Drawing>& drawings, const std::string& provenance,
                      const std::string& notice);

}  // namespace lambcast::report
