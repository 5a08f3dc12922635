// Files that a flag names: --trace FILE, -o FILE, --rows FILE, --manifest FILE.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Writes to stdout if `path` is "-". Throws Error naming the flag: usage if the file cannot be
// opened, since the user gave the path; failure if writing fails (a full disk). The old content
// stays until the new text is on disk.
void write_output(const std::string& path, std::string_view flag, std::string_view text);

}  // namespace lambcast
