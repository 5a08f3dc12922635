// Finds the nearest of the 256 values of a map (reference/eight_bit.h) without a search. Sign,
// exponent and the first bits of the mantissa of x select a bin, in which the nearest value changes
// at most once. The bin's entry contains the position of the change. This is one access to shared
// memory, with two- or three-fold bank conflicts in a warp. The five accesses of a search limited
// the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reference/eight_bit.h"

namespace lambcast::cuda {

// Bins cover 2^-23, below which the nearest value is 0, to 1; the last bin is for NaN. `kept` bits
// of the mantissa distinguish the steps of the map.
struct NearestBins {
  bool both;  // whether x may be negative; bins of negative x follow those of positive x
  int kept = both ? 6 : 7;
  int shift = 23 - kept;
  int first = (127 - 23) << 23, one = 127 << 23, no_number = one + (1 << shift);  // bit patterns
  int count = ((no_number - first) >> shift) + 1;
  int entries = both ? 2 * count : count;
};
template <reference::Sign sign>
constexpr NearestBins nearest_bins{sign == reference::Sign::both};

// Returns the entries of all bins. The lowest byte of an entry is the code before the step (for
// negative x its complement, which also increases with the magnitude). The upper 24 bits are the
// lowest 24 bits of the first magnitude after the step. If the value does not change inside a bin,
// its step is at its beginning.
std::vector<std::uint32_t> nearest_table(reference::Sign sign);

}  // namespace lambcast::cuda
