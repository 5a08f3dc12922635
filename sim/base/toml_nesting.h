// Checks of TOML texts before parsing. toml++ parses, copies and frees tables by recursion, so that
// a key of 50,000 parts overflows the stack. Its messages print a line end as '\n'.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

// Throws Error (usage) at `where`, with the line, if a key has too many parts or brackets are
// nested too deeply for any description. `text` is TOML, or a dotted key.
void check_nesting(std::string_view text, const Where& where);

// Returns the error message of toml++, with "line end" in words.
std::string fault_of_toml(std::string_view description);

}  // namespace lambcast
