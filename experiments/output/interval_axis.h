// Values with their intervals on one axis from zero, for people at a terminal:
//
//   run          0 s                                                     5.1 h
//   hgx-h100-ndr     [---o-------]
//   dgx-a100-80g           [-----o----------------]
#pragma once

#include <string>
#include <vector>

namespace lambcast {

struct AxisEntry {
  std::string name;
  double low = 0, value = 0, high = 0;
};

// A line for each entry under one with the ends of the axis, `zero` and `end`, the latter that of
// the largest `high`; at most 80 columns where names leave room for it. Nothing for no entries.
std::string interval_axis(const std::string& title, const std::vector<AxisEntry>& entries,
                          const std::string& zero, const std::string& end);

}  // namespace lambcast
