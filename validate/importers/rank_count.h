// What the ratio busbw / algbw of a table says about its collective and its number of ranks.
#pragma once

#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// The bandwidths of one row as printed, GB/s, and the largest error of either by rounding.
struct PrintedBandwidth {
  double algbw = 0;
  double busbw = 0;
  double rounding = 0;
  int line = 0;
};

// The number of ranks that the ratio implies, or empty when the factor of the operation does not
// depend on the ranks or the numbers are too coarse to tell n from n+1.
std::optional<int> ranks_from_ratio(Operation operation, const std::vector<PrintedBandwidth>& rows);

// Throws Error when a row's ratio contradicts the operation over `ranks`.
void check_ratio(Operation operation, int ranks, const std::vector<PrintedBandwidth>& rows,
                 const std::string& file);

}  // namespace lambcast::validate
