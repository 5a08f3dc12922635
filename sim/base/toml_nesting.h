// toml++ parses, copies and frees tables by recursion: a key of 50,000 parts ends the stack.
#pragma once

#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

// Throws Error (usage) at `where`, with the line, for a key with more parts or brackets with more
// levels than any description has. `text` is TOML, or a dotted key.
void check_nesting(std::string_view text, const Where& where);

}  // namespace lambcast
