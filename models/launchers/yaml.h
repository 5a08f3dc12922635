// Reads YAML with yaml-cpp, as the tree of models/deepspeed/hjson.h.
//
// Plain scalars are typed as PyYAML types them (YAML 1.1: yes, no, on and off are Booleans), except
// that 1e-5 is a number, as programs take it. Aliases are copies of their anchors; a merge key (<<)
// adds the keys that its map lacks.
// Refused with their line: several documents, tags other than those of YAML's own types, a key
// twice, nesting deeper than hjson::max_depth, aliases that amount to more than most_values.
#pragma once

#include <string>
#include <string_view>

#include "models/deepspeed/hjson.h"

namespace lambcast::launchers {

inline constexpr std::size_t most_values = 100'000;  // of a document, aliases expanded

// Returns the root map. Throws Error (usage) with file and line.
hjson::Value parse_yaml(std::string_view text, const std::string& file);

}  // namespace lambcast::launchers
