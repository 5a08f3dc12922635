// The effect of each key of an input file.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Treatment {
  applied,   // the forecast depends on it
  costless,  // it does not affect the cost of a step; `reason` says why
  named,     // a finding states the value used instead
};

struct LedgerEntry {
  std::string key;
  int line = 0;
  Treatment treatment = Treatment::applied;
  std::string reason;  // reason of costless and named keys
};

// Keys with the same effect, separated by '|'.
struct KeyNames {
  Treatment treatment;
  std::string_view reason, names;
};

// Returns whether a text contains a name between separators or ends.
inline bool holds_name(std::string_view names, std::string_view name, char separator = ' ') {
  for (std::size_t at = names.find(name); at != names.npos; at = names.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || names[at - 1] == separator) && (end == names.size() || names[end] == separator))
      return true;
  }
  return false;
}

}  // namespace lambcast
