// The page of a validation as text: verdict, limits, figures, and a table each of the training
// figures and of the collective tables. Every number in it is computed from the validation, and
// every name from a file is escaped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "experiments/report/drawing.h"
#include "validate/replay/verdict.h"

namespace lambcast {

std::string validation_page(const Validation& validation,
                            const std::vector<report::Figure>& figures);

// What stands in a folder after write_validation():
//
//   DIR/report.html       the page, with the figures inside
//   DIR/training.csv      every training figure, where there are some
//   DIR/collectives.csv   every row of every table, where there are some
//   DIR/plots/            see experiments/report/drawing.h
//
// The same validation gives the same bytes. Throws Error: usage where the folder cannot be made,
// failure for a file that cannot be written. Without gnuplot the pictures are left out.
report::Paths write_validation(const Validation& validation, const std::filesystem::path& dir);

}  // namespace lambcast
