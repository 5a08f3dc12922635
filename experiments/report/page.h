// The report of a sweep as text. Everything that comes from results or manifest is escaped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/drawing.h"
#include "experiments/report/results.h"

namespace lambcast::report {

// manifest.json for people: warnings first, then everything in it, whatever its shape. Throws
// Error naming the file when it is no JSON object, or nests too deep.
std::string manifest_html(std::string_view manifest, const std::string& file);

// `provenance` is HTML; `notice` is text, shown above the figures when not empty.
std::string page_html(const Results& results, const std::vector<Drawing>& drawings,
                      const std::string& provenance, const std::string& notice);

}  // namespace lambcast::report
