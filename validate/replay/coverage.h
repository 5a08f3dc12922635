// How many measured rows lie inside the interval of their forecast: what an interval of 90 % has to
// prove.
#pragma once

#include <string_view>

namespace lambcast {

// Explains the two roles of a measured figure next to the tables that name them.
inline constexpr std::string_view role_legend =
    "fitted: the figure set a parameter of its cluster; unseen: it set none.\n";

struct Coverage {
  int rows = 0;
  int inside = 0;
};

}  // namespace lambcast
