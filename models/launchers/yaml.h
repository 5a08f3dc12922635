// Reads the part of YAML in which people write configurations, as the tree of
// models/deepspeed/hjson.h.
//
// Block maps and lists, flow maps and lists ({a: 1}, [a, b]), plain and quoted scalars, block
// scalars (| and >), comments. Plain scalars are typed as PyYAML types them (YAML 1.1: yes, no, on
// and off are Booleans), except that 1e-5 is a number, as programs take it.
// Refused with their line: anchors, aliases, tags, several documents, tabs that indent, scalars
// over several lines, a key twice.
#pragma once

#include <string>
#include <string_view>

#include "models/deepspeed/hjson.h"

namespace lambcast::launchers {

// Returns the root map. Throws Error (usage) with file and line.
hjson::Value parse_yaml(std::string_view text, const std::string& file);

}  // namespace lambcast::launchers
