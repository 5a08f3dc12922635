// The parts of a step that follow one another and add up to its time: the one list that forecasts'
// columns (forecast.h, "forward_us" and so on), figures and pages read.
//
// Communication counts only where it is exposed, since the rest hides behind the backward pass.
#pragma once

#include <array>
#include <string_view>

namespace lambcast {

inline constexpr std::array<std::string_view, 7> step_parts{
    "forward", "backward", "exposed_comm", "compress", "decompress", "optimizer", "bubble"};

}  // namespace lambcast
