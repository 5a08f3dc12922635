// Releases of software: "2.8.3", "0.15.4+cu121".
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

using Version = std::array<int, 3>;  // 2.8.3; absent parts are 0

// Parses a version and ignores the text after its third number. Throws Error (usage) at `where`.
Version parse_version(std::string_view text, const Where& where);
std::string text_of(const Version& version);

}  // namespace lambcast
