// Checks the bandwidths printed next to a time, and derives the collective and its number of ranks
// from the ratio busbw / algbw.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// The bandwidths of one row as printed, in GB/s, and the largest rounding error of either.
struct PrintedBandwidth {
  double algbw = 0;
  double busbw = 0;
  double rounding = 0;
  int line = 0;
};

// Throws Error unless algbw is size / time, each within its rounding and half a percent.
void check_algbw(double size_bytes, std::string_view time_us, std::string_view algbw_GBps,
                 const Where& where);

// Returns the number of ranks that the ratio implies. Nothing if the factor of the operation does
// not depend on the ranks, or if the numbers are too coarse to distinguish n from n+1.
std::optional<int> ranks_from_ratio(Operation operation, const std::vector<PrintedBandwidth>& rows);

// Throws Error if a row's ratio contradicts the operation over `ranks`.
void check_ratio(Operation operation, int ranks, const std::vector<PrintedBandwidth>& rows,
                 const std::string& file);

// Throws Error if hosts have different numbers of ranks, since a table is forecast for equal nodes.
void check_even_hosts(const std::map<std::string, int>& ranks_of_host, const Where& where);

}  // namespace lambcast::validate
