// The report of a sweep as HTML. All text from results or manifest is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/results.h"

namespace lambcast::report {

// Renders manifest.json as HTML: warnings first, then all members, of any shape. Throws Error
// naming the file if it is not a JSON object or is nested too deeply.
std::string manifest_html(std::string_view manifest, const std::string& file);

// Returns the what-if keys that a manifest.json lists as swept; nothing if the text is no manifest.
std::vector<std::string> swept_keys(std::string_view manifest);

// Returns the name of the study of a manifest.json; nothing if it has none or is no manifest.
std::string study_name(std::string_view manifest);

// Content of a page except its rows.
struct PageFacts {
  std::string provenance;          // HTML
  std::vector<std::string> swept;  // what-if keys
  std::vector<std::string> plots;  // names of files under plots/
  std::string study = {};          // name of the study, for the titles
};
std::string page_html(const Results& results, const PageFacts& facts);

}  // namespace lambcast::report
