// Logs of tools that measure a network, a node or a job, and are not read.
#pragma once

#include <string>
#include <string_view>

namespace lambcast::validate {

// Throws Error if the text comes from a tool whose logs are not read. The error names the tool, and
// how to measure instead. `json` tells whether the text is JSON.
void refuse_foreign_log(std::string_view text, const std::string& file, bool json);

}  // namespace lambcast::validate
