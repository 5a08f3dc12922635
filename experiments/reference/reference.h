// All names that lambcast reads and writes, from the tables that the code itself uses: keys of
// what-ifs (what_if.h), keys read from descriptions (sim/base/asked_keys.h), columns of CSV
// (result_row.h), fields of JSON (the shipped schemas), codes of findings (collected from the
// sources at build time), metrics (metric.h). Their meanings are in reference_words.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/json.h"

namespace lambcast {

// Returns "keys", "descriptions", "columns", "fields", "findings", "metrics".
const std::vector<std::string>& reference_topics();

// Returns one topic, as `lambcast help` shows it.
std::string reference_text(std::string_view topic);

// Returns the codes of findings, which tools/cmake/FindingCodes.cmake collects from the sources.
const std::vector<std::string>& finding_codes();

// Returns all topics as a page of Markdown.
std::string reference_page();

// Returns all topics: each is a list of sections with their entries.
Json reference_json();

}  // namespace lambcast
