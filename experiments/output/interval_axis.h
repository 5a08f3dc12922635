// Draws values with their intervals on one text axis that starts at zero:
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

// Returns a header line with the ends of the axis, then one line per entry. `end` is the text of
// the largest `high`. Lines have at most 80 columns unless names are too long. Empty without
// entries.
std::string interval_axis(const std::string& title, const std::vector<AxisEntry>& entries,
                          const std::string& zero, const std::string& end);

}  // namespace lambcast
