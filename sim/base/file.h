// The files users name: what is one, and reading it whole.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

// A path rather than a preset's name: it has a slash, ends in ".toml" or ".json", or is
// "-", stdin.
bool is_path(std::string_view name);

// Returns the text of a file, or of standard input for "-", without a byte order mark. Throws Error
// (usage) naming the file if it cannot be read, is a folder, or is a pipe without a writer for 3 s.
// The same holds if it is larger than any description or configuration could be (a device that
// never ends), or is UTF-16. Standard input is read once and kept: a description is read again for
// every change of it.
std::string read_file(const std::string& path, std::size_t max_mib = 64);

// The path that this thread gave to read_file() last, or empty: an error without a place names it.
const std::string& last_file_read();

}  // namespace lambcast
