#include "kernels/cuda/eight_bit_code.h"

#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast::cuda {
namespace {

struct Half {  // values of one sign in a map
  const std::array<float, 256>& map;
  const NearestBins& bins;
  bool negative;

  unsigned code(int magnitude) const {
    const float x = magnitude == bins.no_number ? std::nanf("") : std::bit_cast<float>(magnitude);
    const unsigned nearest = reference::nearest(map, negative ? -x : x);
    return negative ? 255 - nearest : nearest;
  }
  std::uint32_t entry(int begin) const {
    const int last = begin >= bins.one ? begin : begin + (1 << bins.shift) - 1;
    const unsigned after = code(last);
    int step = begin;  // the first magnitude with the code `after`
    for (int size = last - begin; size > 0;) {
      const int half = size / 2;
      if (code(step + half) != after)
        step += half + 1, size -= half + 1;
      else
        size = half;
    }
    LAMBCAST_CHECK(step == begin || code(begin) + 1 == after, "two steps behind {}", begin);
    return static_cast<std::uint32_t>(step) << 8 | ((after - 1) & 0xff);
  }
};

}  // namespace

std::vector<std::uint32_t> nearest_table(reference::Sign sign) {
  const NearestBins bins{sign == reference::Sign::both};
  std::vector<std::uint32_t> table;
  for (const bool negative : {false, true}) {
    if (negative && !bins.both) break;
    const Half half{reference::dynamic_map(sign), bins, negative};
    for (int bin = 0; bin < bins.count; ++bin) {
      table.push_back(half.entry(bins.first + (bin << bins.shift)));
    }
  }
  return table;
}

}  // namespace lambcast::cuda
