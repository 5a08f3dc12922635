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
#include "sim/base/csv.h"

namespace lambcast::report {

// Throws Error: usage for a missing or malformed results.csv or a malformed manifest.json, failure
// for a file that cannot be written or for gnuplot failing (with its message). Gnuplot not being
// installed is no error: everything but the pictures comes out, and a message says so.
Paths write_report(const std::filesystem::path& results_dir);

// The verdict and the spread of speed-ups, for stdout.
std::string summary_text(const csv::Table& results);

}  // namespace lambcast::report
