// Reads the files that users name.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

// Returns whether `name` is a path and not a preset's name: it has a slash, ends in ".toml" or
// ".json", or is "-" (stdin).
bool is_path(std::string_view name);

// Returns the text of a file, or of standard input for "-", without a byte order mark. Standard
// input is read once and kept, since a description is read again for every change of it.
//
// Throws Error (usage) naming the file if it cannot be read, is a folder, is UTF-16, is larger than
// `max_mib` MiB (for instance a device that never ends), or is a pipe without a writer for 3 s.
std::string read_file(const std::string& path, std::size_t max_mib = 64);

// Returns the path that this thread gave to read_file() last, or an empty string. Errors that have
// no place of their own name this file.
const std::string& last_file_read();

}  // namespace lambcast
