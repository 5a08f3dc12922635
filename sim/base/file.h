// Reading a user's file whole.
#pragma once

#include <cstddef>
#include <string>

namespace lambcast {

// Throws Error (usage) naming the file when it cannot be read, is no file (a folder), or is larger
// than any description or configuration could be (a device that never ends).
std::string read_file(const std::string& path, std::size_t max_mib = 64);

}  // namespace lambcast
