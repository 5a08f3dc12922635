// Reads YAML with yaml-cpp, as the tree of models/deepspeed/hjson.h.
//
// Plain scalars have the types of PyYAML (YAML 1.1: yes, no, on and off are Booleans), except that
// 1e-5 is a number, as programs treat it. Aliases are copies of their anchors; a merge key (<<)
// adds the keys that its map lacks. Refused with their line: several documents, tags other than
// those of YAML's own types, duplicate keys, nesting deeper than hjson::max_depth, aliases that
// expand to more than most_values values.
#pragma once

#include <string>
#include <string_view>

#include "models/deepspeed/hjson.h"

namespace lambcast::launchers {

inline constexpr std::size_t most_values =
    100'000;  // limit of values in a document with expanded aliases

// Returns the root map. Throws Error (usage) with file and line.
hjson::Value parse_yaml(std::string_view text, const std::string& file);

}  // namespace lambcast::launchers
