// The nearest of the 256 values of a map (reference/eight_bit.h) without a search: sign, exponent
// and the first bits of the mantissa of x choose a bin, in which the nearest value changes once or
// not at all, and the bin's entry says where. It is one access to shared memory, of which those of
// a warp meet in the same banks two or three times over: a search's five bound the kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reference/eight_bit.h"

namespace lambcast::cuda {

// Bins reach from 2^-23, below which all is nearest to 0, to 1; the last one is for what is no
// number. `kept` bits of the mantissa tell the steps of the map apart.
struct NearestBins {
  bool both;  // signs; the bins of negative x lie behind those of positive ones
  int kept = both ? 6 : 7;
  int shift = 23 - kept;
  int first = (127 - 23) << 23, one = 127 << 23, no_number = one + (1 << shift);  // as bits
  int count = ((no_number - first) >> shift) + 1;
  int entries = both ? 2 * count : count;
};
template <reference::Sign sign>
constexpr NearestBins nearest_bins{sign == reference::Sign::both};

// An entry: the code before the step in its lowest byte, of negative x its complement, which rises
// with the magnitude too; above it the lowest 24 bits of the first magnitude behind the step. A bin
// without a step has one at its beginning.
std::vector<std::uint32_t> nearest_table(reference::Sign sign);

}  // namespace lambcast::cuda
