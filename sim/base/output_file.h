// Files that a flag names: --trace FILE, -o FILE, --rows FILE, --manifest FILE.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// "-" is stdout. Throws Error naming the flag: usage where the file cannot be opened, since the
// path is the user's, failure where it cannot be written whole (a full disk). What the file held
// before stays until the new text is on disk.
void write_output(const std::string& path, std::string_view flag, std::string_view text);

}  // namespace lambcast
