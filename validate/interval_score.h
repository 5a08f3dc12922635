// Quality of a 90 % interval [l, h] for a measured m, in logarithms (the interval score of Gneiting
// and Raftery 2007):
//
//   log(h / l) + 2 / 0.1 * distance of m outside the interval
//
// Lower is better: unnecessary width has a cost, and so has a measured value outside.
#pragma once

#include <algorithm>
#include <cmath>

namespace lambcast {

inline double interval_score(double low, double high, double measured) {
  constexpr double outside_weight = 2 / 0.1;  // 2 / (1 - 90 %)
  return std::log(high / low) + outside_weight * (std::max(0.0, std::log(low / measured)) +
                                                  std::max(0.0, std::log(measured / high)));
}

}  // namespace lambcast
