// How many measured rows lie inside the interval of their forecast: what an interval of 90 % has to
// prove.
#pragma once

namespace lambcast {

struct Coverage {
  int rows = 0;
  int inside = 0;
};

}  // namespace lambcast
