// Quantities in table cells. They have a fixed number of digits, trailing zeros included, so that
// columns align. Sentences omit trailing zeros: "20 min" (run_time_text(), to_text()).
#pragma once

#include <cstddef>
#include <string>

#include "sim/base/units.h"

namespace lambcast {

// Width of a terminal in columns. Tables stay within it if possible.
constexpr std::size_t page_width = 80;

// Formats with four digits: "20.00 min", "1.340 GB".
std::string time_cell(double seconds);
std::string bytes_cell(Bytes bytes);

// Formats an interval in the unit of `seconds`: "269.3 to 714.6 s".
std::string time_range(double seconds, double low_s, double high_s);
// Formats the value and its interval, for sentences: "431.9 s (269.3 to 714.6 s)".
std::string time_and_range(double seconds, double low_s, double high_s);

// Formats with four digits; a longer integer part is printed whole: "5.512", "705600".
std::string number_cell(double value);

// Formats US dollars with three digits, at most to the cent: "7.27", "12.3", "1234".
std::string usd_cell(double usd);
// Returns the text shown instead of a cost if the cluster has no price.
std::string no_price_text();

}  // namespace lambcast
