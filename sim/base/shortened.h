// Shortens quoted text in messages: files and flags may hold megabytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

// Returns `text` unchanged up to `longest` bytes. A longer text becomes its beginning, the number
// of bytes left out, and its end. UTF-8 characters are never split.
std::string shortened(std::string_view text, std::size_t longest);

}  // namespace lambcast
