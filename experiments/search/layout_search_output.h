// Formats the result of a layout search as a table, as JSON (schema version 1) and as CSV (one row
// per layout).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/search/layout_search.h"

namespace lambcast {

// Prints the best layouts on one screen.
std::string layout_search_table(const LayoutSearch& search);

// Prints what the screen leaves out: all columns ("layouts"), or why others do not run ("refused").
std::string explain_layout_search(const LayoutSearch& search, std::string_view what);

// Returns the command that forecasts a layout.
std::string simulate_line(const WhatIf& what_if);

std::string layout_search_json(const LayoutSearch& search);
std::string layout_search_csv(const LayoutSearch& search);

}  // namespace lambcast
