// What a search for layouts found, for people (a table), for programs (JSON, schema version 1) and
// for spreadsheets (CSV, a row per layout).
#pragma once

#include <string>

#include "experiments/search/layout_search.h"

namespace lambcast {

std::string layout_search_table(const LayoutSearch& search);
std::string layout_search_json(const LayoutSearch& search);
std::string layout_search_csv(const LayoutSearch& search);

}  // namespace lambcast
