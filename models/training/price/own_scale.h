// Width of a time if a figure of this machine set its scale, also after --set changes the scale:
//
//   w = sqrt(w_own^2 + ln(scale / own)^2), at most the width without such a figure
//
// w_own is the half width at the scale of the figure, in logarithms. The width is continuous: it
// grows from w_own at the described scale to the width of other machines.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace lambcast {

// Returns |ln(scale / own)|; infinite if no figure of the machine set the scale.
inline double distance_from_own(double scale, const std::optional<double>& own) {
  return own ? std::abs(std::log(scale / *own)) : std::numeric_limits<double>::infinity();
}

inline double width_near_own(double own_width, double distance, double otherwise) {
  return std::min(std::hypot(own_width, distance), otherwise);
}

}  // namespace lambcast
