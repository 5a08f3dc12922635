// One what-if as text, and the keys it may have. A key is one row of the table in what_if.cc: the
// flag of `simulate` and `advise`, the key of sweep files, the column of users' tables of runs, its
// line of --help and "did you mean" all come from there. scenario.cc or layout_choice.cc interprets
// its value.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

// Values by key: the flag's name with '_' for '-', or a dotted key that starts with "cluster.",
// "device.", "model." or "run." (what --set changes). Keys of the device change the device that the
// run uses: the cluster's own, or the one named by "device".
//
// freeze_step may be a share of the steps ("16.7%"). samples gives the steps as samples over global
// batch, rounded up; both may be given if they agree. One of config, model, cluster and device may
// be "-", stdin.
using WhatIf = std::map<std::string, std::string, std::less<>>;

enum class ValueType { text, whole, number, share_or_whole, words };

// Range of a number in which an answer is searched for (solve_variable.h).
struct UsualRange {
  double low = 1, high = 4096;
};

struct WhatIfKey {
  WhatIfKey(std::string_view name_of, std::string_view help_text,
            ValueType type_of = ValueType::text, UsualRange usual_range = {})
      : name(name_of), help(help_text), type(type_of), range(usual_range) {}
  WhatIfKey(std::string_view name_of, std::string_view help_text, std::vector<std::string> all)
      : name(name_of), help(help_text), type(ValueType::words), words(std::move(all)) {}

  std::string_view name;
  std::string_view help;
  ValueType type = ValueType::text;
  UsualRange range{};
  std::vector<std::string> words{};  // all valid values
  std::string_view group{};          // its heading in help texts

  // Returns whether the values are "false" and "true"; the flag without a value means "true".
  bool is_switch() const { return words.size() == 2 && words[0] == "false" && words[1] == "true"; }
};
// The word of `recompute` that has no Recompute value (activation_memory.h): recompute only the
// router and experts.
inline constexpr std::string_view recompute_experts = "experts";

// The group of the keys that select a layout (layout_choice.h) if they are given.
inline constexpr std::string_view layout_group = "Layout";

// Returns all keys, in the order of help texts.
std::span<const WhatIfKey> what_if_table();

// Returns the names of all keys.
const std::vector<std::string>& what_if_keys();

// Returns the values of a key that has a list of them.
const std::vector<std::string>& words_of(std::string_view key);

// Returns whether the key begins with its description: "cluster.", "device." or "model.".
bool is_of_description(std::string_view key);

// Returns the row of a key, or null.
const WhatIfKey* find_key(std::string_view name);

// Returns the placeholder after the flag in --help: "N", "X", "TEXT".
std::string_view name_of(ValueType type);

// Returns the help text of the key. Its allowed values are appended if the text does not list them.
std::string help_of(const WhatIfKey& key);

}  // namespace lambcast
