// Keys that a description must have; all missing ones are named at once.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/table.h"

namespace lambcast {

// A key of a section; if `given` is named, only where that key of the section has one of `values`.
struct RequiredKey {
  std::string_view section, key, given = {};
  std::vector<std::string_view> values = {};
};

// Throws Error (usage) that names all missing keys if there are several, and the preset that shows
// them. One that is missing alone is left to the reader of that key.
void refuse_missing_keys(const Table& root, const std::vector<RequiredKey>& required,
                         std::string_view preset);

}  // namespace lambcast
