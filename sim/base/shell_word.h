// A text as one word of a POSIX shell, for commands that are printed to be run.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// In single quotes unless every letter means itself.
std::string shell_word(std::string_view text);

}  // namespace lambcast
