// One what-if as text, and the keys it may have. A key is one row of the table in what_if.cc: the
// flag of `simulate` and `advise`, the key of sweep files, the column of users' tables of runs, its
// line of --help and "did you mean" all come from there. What its value means is read in
// scenario.cc or layout_choice.cc.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

// By key: the flag's name with '_' for '-', or a dotted key that starts with "cluster.",
// "device.", "model." or "run." (what --set changes). Those of the device change the one that the
// run uses: the cluster's own, or what "device" names.
//
// freeze_step may be a share of the steps ("16.7%"); samples gives the steps as samples over global
// batch, rounded up; both, where they agree. One of config, model, cluster and device may be "-",
// stdin.
using WhatIf = std::map<std::string, std::string, std::less<>>;

enum class ValueType { text, whole, number, share_or_whole, words };

// Between which values of a number an answer is looked for (solve_variable.h).
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
  std::vector<std::string> words{};  // all values it may have
  std::string_view group{};          // the heading it stands under

  // Returns whether the values are "false" and "true"; the flag alone means "true".
  bool is_switch() const { return words.size() == 2 && words[0] == "false" && words[1] == "true"; }
};
// The word of `recompute` that is no Recompute (activation_memory.h): the router and experts alone.
inline constexpr std::string_view recompute_experts = "experts";

// The group of the keys that select a layout (layout_choice.h) if they are given.
inline constexpr std::string_view layout_group = "Layout";

// In the order of help texts.
std::span<const WhatIfKey> what_if_table();

// Names of the keys.
const std::vector<std::string>& what_if_keys();

// The values of a key that has a list of them.
const std::vector<std::string>& words_of(std::string_view key);

// Returns whether the key begins with its description: "cluster.", "device." or "model.".
bool is_of_description(std::string_view key);

// The row of a key, or null.
const WhatIfKey* find_key(std::string_view name);

// Returns the placeholder after the flag in --help: "N", "X", "TEXT".
std::string_view name_of(ValueType type);

// Returns the text of --help, followed by the key's words if the text does not name them itself.
std::string help_of(const WhatIfKey& key);

}  // namespace lambcast
