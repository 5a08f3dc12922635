// The report of a results folder: pictures for papers and slides, one HTML page that works
// without a network, and a summary in plain text.
//
//   DIR/results.csv, DIR/manifest.json   read; a missing manifest is said on the page
//   DIR/report.html                      written; figures, styles and script are inside it
//   DIR/plots/                           written; see drawing.h
//
// The same results give the same bytes: nothing written here holds a date or a path.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/report/drawing.h"
#include "experiments/report/results.h"

namespace lambcast::report {

// What a sweep left in `results_dir`. Throws Error (usage) for a missing or malformed results.csv.
Results read_results(const std::filesystem::path& results_dir);

// Throws Error (usage) for a report.html there that this program did not write: it stays.
void refuse_foreign_page(const std::filesystem::path& results_dir);

// Throws Error: usage for a malformed manifest.json or a report.html of somebody else, failure for
// a file that cannot be written. Gnuplot failing, or not being installed, is no error: everything
// but the pictures comes out, and a message says so.
Paths write_report(const Results& results, const std::filesystem::path& results_dir,
                   const DrawingLimits& limits = {});

// The verdict and the spread of speed-ups, for stdout.
std::string summary_text(const Results& results);

}  // namespace lambcast::report
