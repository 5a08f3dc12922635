// Formats the result of a layout search as a table, as JSON (schema version 1) and as CSV (one row
// per layout).
#pragma once

#include <string>

#include "experiments/search/layout_search.h"

namespace lambcast {

std::string layout_search_table(const LayoutSearch& search);
std::string layout_search_json(const LayoutSearch& search);
std::string layout_search_csv(const LayoutSearch& search);

}  // namespace lambcast
