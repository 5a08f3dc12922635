// Names and messages come from files and flags, and may hold any bytes. An escape byte controls the
// terminal, a line end splits a line, and bytes that are not UTF-8 break JSON and SVG.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns `text` as one line of valid UTF-8. Each control character (C0, DEL, C1) becomes a space,
// and each byte that is not UTF-8 becomes the replacement character U+FFFD.
std::string printable(std::string_view text);

// Returns a message as one line for users: findings at several places are separated by semicolons.
std::string one_line(std::string_view message);

}  // namespace lambcast
