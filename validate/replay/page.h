// The page of a validation as HTML: verdict, limits, figures, a table of the training figures and
// one of the collective tables. All numbers are computed from the validation, and all names from
// files are escaped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/drawing.h"
#include "validate/replay/verdict.h"

namespace lambcast {

std::string validation_page(const Validation& validation,
                            const std::vector<report::Figure>& figures);

// Writes the folder of a validation:
//
//   DIR/report.html       the page, with the figures inside
//   DIR/training.csv      every training figure, if there are any
//   DIR/collectives.csv   every row of every table, if there are any
//   DIR/plots/            see experiments/report/drawing.h
//
// The same validation gives the same bytes. Throws Error: usage if the folder cannot be made,
// failure for a file that cannot be written. Without gnuplot the pictures are left out.
report::Paths write_validation(const Validation& validation, const std::filesystem::path& dir);

}  // namespace lambcast
