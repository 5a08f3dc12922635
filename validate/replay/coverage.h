// Counts of measured rows inside the interval of their forecast, to check 90 % intervals.
#pragma once

#include <string_view>

namespace lambcast {

// Explains the two roles of a measured figure, next to the tables that use them.
inline constexpr std::string_view role_legend =
    "fitted: the figure set a parameter of its cluster; unseen: it set none.\n";

struct Coverage {
  int rows = 0;
  int inside = 0;
};

}  // namespace lambcast
