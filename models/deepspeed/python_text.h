// A text file as read by Python's open(path): valid UTF-8, every line ending in '\n'.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lambcast::deepspeed {

// Returns `bytes` with \r\n and \r replaced by \n and without a byte order mark. Throws Error with
// the line of the first byte that is not UTF-8 (Unicode 15, table 3-7).
std::string python_text(std::string_view bytes, const std::string& file);

// Appends a code point as UTF-8; half a surrogate pair becomes U+FFFD, the replacement character.
void append_utf8(std::string& text, std::uint32_t code);

}  // namespace lambcast::deepspeed
