// Keys that a description must have. An error names all missing ones at once.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/table.h"

namespace lambcast {

// A required key of a section. If `given` names another key, this one is required only if that key
// has one of `values`.
struct RequiredKey {
  std::string_view section, key, given = {};
  std::vector<std::string_view> values = {};
};

// Throws Error (usage) that names all missing keys if there are several, and the preset that shows
// them. A single missing key is reported by the reader of that key.
void refuse_missing_keys(const Table& root, const std::vector<RequiredKey>& required,
                         std::string_view preset);

}  // namespace lambcast
