// Ratios of times in words.
#pragma once

#include <string>

namespace lambcast {

// Returns a ratio with two digits behind the point, or up to four if two would hide on which side
// of 1 it lies: "0.84", "1.003".
std::string ratio_digits(double ratio);

// Returns "1.003 times as long", or "as long" if four digits cannot tell the ratio from 1.
std::string times_as_long(double ratio);

}  // namespace lambcast
