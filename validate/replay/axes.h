// Axes of the validation's figures: ranges that contain the values, and labelled tick marks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/scatter.h"

namespace lambcast {

// All axes are logarithmic, contain every value (above zero) and leave some room at both ends.

// Axis in microseconds, with a tick at each power of ten: "10 us", "100 us", "1 ms". Ticks are
// denser if those are fewer than three.
ScatterAxis time_axis(std::string label, const std::vector<double>& values_us);
// Axis in bytes, with ticks at the ends of the size bands among others: "64 KiB", or "64K" if it is
// short.
ScatterAxis size_axis(std::string label, const std::vector<double>& values, bool is_short);
// Axis of forecast / measured, labelled with the error in percent: "+100%" at 2.
ScatterAxis ratio_axis(std::string label, const std::vector<double>& values);
// Axis with ticks at 1, 2, 5, 10, ... followed by a unit; only at powers of ten if there would be
// more than `most`.
ScatterAxis round_axis(std::string label, const std::vector<double>& values, std::string_view unit,
                       std::size_t most);

// Returns the line y = factor x from end to end of the axes.
Guide proportional(const ScatterAxis& x, double factor, Guide::Kind kind);

}  // namespace lambcast
