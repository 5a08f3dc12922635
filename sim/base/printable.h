// Names and messages come from files and flags, and may hold anything. An escape byte steers a
// terminal, a line end makes two lines of one, and bytes that are no UTF-8 break JSON and SVG.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// `text` as one line of valid UTF-8 without control characters (C0, DEL, C1): each of those becomes
// a space, and each byte that is no UTF-8 the replacement character U+FFFD.
std::string printable(std::string_view text);

// A message as people get it: what is wrong at several places stands behind semicolons.
std::string one_line(std::string_view message);

}  // namespace lambcast
