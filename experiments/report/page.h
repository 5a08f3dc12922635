// The report of a sweep as text. Everything that comes from results or manifest is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/results.h"

namespace lambcast::report {

// manifest.json for people: warnings first, then everything in it, whatever its shape. Throws
// Error naming the file when it is no JSON object, or nests too deep.
std::string manifest_html(std::string_view manifest, const std::string& file);

// What a manifest.json says was swept, as what-if keys; nothing of a text that is none.
std::vector<std::string> swept_keys(std::string_view manifest);

// What stands beside the rows on a page.
struct PageFacts {
  std::string provenance;          // HTML
  std::vector<std::string> swept;  // what-if keys
  std::vector<std::string> plots;  // names of files under plots/
};
std::string page_html(const Results& results, const PageFacts& facts);

}  // namespace lambcast::report
