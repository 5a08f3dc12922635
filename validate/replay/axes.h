// Axes of the validation's figures: ranges that hold the values, tick marks in words for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/scatter.h"

namespace lambcast {

// All of them are logarithmic, hold every value (above zero) and leave some room at both ends.

// Microseconds, with a tick at each power of ten, "10 us", "100 us", "1 ms", or closer where those
// are fewer than three.
ScatterAxis time_axis(std::string label, const std::vector<double>& values_us);
// Bytes, with ticks at the ends of the size bands among others: "64 KiB", or "64K" where it is
// short.
ScatterAxis size_axis(std::string label, const std::vector<double>& values, bool is_short);
// forecast / measured, labelled with its error in percent: at 2 stands "+100%".
ScatterAxis ratio_axis(std::string label, const std::vector<double>& values);
// Ticks at 1, 2, 5, 10, ... with a unit after each; at powers of ten where there would be more than
// `most`.
ScatterAxis round_axis(std::string label, const std::vector<double>& values, std::string_view unit,
                       std::size_t most);

// The line y = factor x from end to end of the axes.
Guide proportional(const ScatterAxis& x, double factor, Guide::Kind kind);

}  // namespace lambcast
