// Formats ratios of times in words.
#pragma once

#include <string>

namespace lambcast {

// Returns a ratio with two decimal places, or up to four if two would hide on which side of 1 it
// lies: "0.84", "1.003".
std::string ratio_digits(double ratio);

// Returns "1.003 times as long", or "as long" if the ratio is 1 to four decimal places.
std::string times_as_long(double ratio);

}  // namespace lambcast
