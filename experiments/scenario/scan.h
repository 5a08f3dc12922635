// The values of a key of a sweep: listed, or scanned from one number to another.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

// A key and the values it takes.
using Axis = std::pair<std::string, std::vector<std::string>>;

// Parse `--scan KEY=low:high:step` and `--list KEY=a,b`. Throw Error (usage) naming the flag.
Axis parse_scan(std::string_view text);
Axis parse_list(std::string_view text);

// Throws Error (usage) at `where` if a value occurs twice; spaces are ignored.
void refuse_twice(const std::vector<std::string>& values, const Where& where);

// Returns whether a text has the form of a scan, valid or not.
bool is_scan(std::string_view text);

// Expands "8:256:x2" (geometric) or "0:100:25" (arithmetic); both ends are included if a step hits
// them. "8..256" doubles from the first to the second, which is always the last. A unit after the
// numbers is kept: "1Gbit/s:64Gbit/s:x2". Throws Error (usage) at `where` if the text is not a
// scan, and for more than 100,000 values.
std::vector<std::string> expand_scan(std::string_view text, const Where& where);

}  // namespace lambcast
