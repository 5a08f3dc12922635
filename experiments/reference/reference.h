// All names that lambcast reads and writes, from the tables that the code itself uses. They are
// keys of what-ifs (what_if.h), keys read from descriptions (sim/base/asked_keys.h), columns of CSV
// (result_row.h), fields of JSON (the schemas that ship), codes of findings (collected from the
// sources when the program is built), metrics (metric.h). The meanings of columns, descriptions and
// findings are in reference_words.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.h"

namespace lambcast {

// "keys", "descriptions", "columns", "fields", "findings", "metrics".
const std::vector<std::string>& reference_topics();

// One topic, as `lambcast help` shows it.
std::string reference_text(std::string_view topic);

// The codes that findings may carry: tools/cmake/FindingCodes.cmake writes it from the sources.
const std::vector<std::string>& finding_codes();

// All of them as a page of Markdown.
std::string reference_page();

// All of them by topic: a list of sections, each with its entries.
Json reference_json();

}  // namespace lambcast
