// The report of a results folder: pictures for papers and slides, one HTML page that works without
// a network, and a summary in plain text.
//
//   DIR/results.csv, DIR/manifest.json   read; the page states if a manifest is missing
//   DIR/report.html                      written; contains figures, styles and script
//   DIR/plots/                           written; see drawing.h
//
// The same results give the same bytes: the files contain no date and no path.
#pragma once

#include <filesystem>
#include <string>

#include "experiments/report/drawing.h"
#include "experiments/report/results.h"

namespace lambcast::report {

// Reads the results of a sweep in `results_dir`. Throws Error (usage) if results.csv is missing or
// malformed.
Results read_results(const std::filesystem::path& results_dir);

// Throws Error (usage) if there is a report.html that this program did not write.
void refuse_foreign_page(const std::filesystem::path& results_dir);

// Writes the report. Throws Error: usage for a malformed manifest.json or a foreign report.html,
// failure for a file that cannot be written. A missing or failing gnuplot is no error: everything
// except the pictures is written, and a message states so.
Paths write_report(const Results& results, const std::filesystem::path& results_dir,
                   const DrawingLimits& limits = {});

// Returns the answer on one screen: the verdict, the best point and the best exchanges of each
// cluster. `more` is the command that prints the rest.
std::string summary_screen(const Results& results, const std::string& more);
// Returns all sentences of the summary and the spread of all speed-ups.
std::string summary_text(const Results& results);

}  // namespace lambcast::report
