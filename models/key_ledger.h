// The effect of each key of an input file.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Treatment {
  applied,   // the forecast depends on it
  costless,  // it does not affect the cost of a step; `reason` states why
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

// Keys without cost for one reason, separated by spaces. A key that ends in '*' stands for all keys
// with that beginning.
struct CostlessKeys {
  std::string_view reason, keys;
};

// Keys of a format by effect, except keys in other tables. All further keys of a file are `named`.
struct KeysOfFormat {
  std::set<std::string> applied, named;
  std::vector<CostlessKeys> costless;
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

// Calls `act` with each name in a list of names with separators between them.
template <typename Act>
void for_each_name(std::string_view names, Act act, char separator = ' ') {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(separator), names.size());
    if (end > 0) act(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

// Returns why a key has no cost; empty for other keys.
inline std::string_view costless_reason(std::span<const CostlessKeys> groups,
                                        std::string_view key) {
  std::string_view reason;
  for (const CostlessKeys& group : groups)
    for_each_name(group.keys, [&](std::string_view known) {
      const bool begins =
          known.ends_with('*') && key.starts_with(known.substr(0, known.size() - 1));
      if (reason.empty() && (known == key || begins)) reason = group.reason;
    });
  return reason;
}

}  // namespace lambcast
