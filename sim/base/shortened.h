// Messages quote what files and flags hold, which may be megabytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

// `text` itself up to `longest` bytes; a longer one is cut in its middle: its beginning, the number
// of bytes that are left out, and its end. Characters of UTF-8 stay whole.
std::string shortened(std::string_view text, std::size_t longest);

}  // namespace lambcast
