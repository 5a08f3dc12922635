// Refuses files with too many unknown keys. Each unknown key is compared with every known one and
// becomes a finding, and a file with hundreds of them belongs to another program.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "models/finding.h"
#include "sim/base/error.h"

namespace lambcast {

inline constexpr std::ptrdiff_t most_unknown_keys = 500;

// Throws Error (usage) if the findings include too many of the code "unknown-key".
inline void refuse_many_unknown_keys(const std::vector<Finding>& findings, const std::string& file,
                                     std::string_view program) {
  if (std::ranges::count(findings, "unknown-key", &Finding::code) < most_unknown_keys) return;
  fail_input({file, 0, {}}, fmt::format("holds {} keys that {} does not have: give a file of {}",
                                        most_unknown_keys, program, program));
}

}  // namespace lambcast
