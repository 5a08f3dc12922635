// Faults of TOML texts. toml++ parses, copies and frees tables by recursion: a key of 50,000 parts
// ends the stack. Its messages print the end of a line as '\n'.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

// Throws Error (usage) at `where`, with the line, for a key with more parts or brackets with more
// levels than any description has. `text` is TOML, or a dotted key.
void check_nesting(std::string_view text, const Where& where);

// Returns what toml++ says of a text that is no TOML, with the end of a line in words.
std::string fault_of_toml(std::string_view description);

}  // namespace lambcast
