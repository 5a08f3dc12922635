// Device code of eight_bit_code.h.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/eight_bit_code.h"

namespace lambcast::cuda {

// Returns the code of x, which is |x| <= 1 or NaN; `table` is nearest_table(sign).
template <reference::Sign sign>
__device__ unsigned nearest_code(const std::uint32_t* table, float x) {
  constexpr NearestBins bins = nearest_bins<sign>;
  const bool negative = bins.both && to_bits(x) >> 31 != 0;
  const int bits = static_cast<int>(bins.both ? magnitude_bits(x) : to_bits(x)),
            within = min(max(bits, bins.first), bins.no_number),
            bin = (within - bins.first) >> bins.shift;
  const std::uint32_t entry = table[negative ? bin + bins.count : bin],
                      at = static_cast<std::uint32_t>(within) << 8 | 0xff;
  const unsigned code = entry + (at >= entry ? 1 : 0);
  return (negative ? ~code : code) & 0xff;
}

}  // namespace lambcast::cuda
