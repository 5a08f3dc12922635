// A text as one word of a POSIX shell, for commands that are printed to be run.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns the text in single quotes, unless no character is special to the shell.
std::string shell_word(std::string_view text);

}  // namespace lambcast
