// Inputs with an exactly known reduced value, so that every element of every result can be
// checked for equality.
//
// Element i of rank r holds (r + h(i)) mod 251 with h a hash of i: whole numbers below 251, so
// that a sum over up to 66,000 ranks stays below 2^24 and is exact in fp32 for any order of
// addition, and each also fits a byte. The sum over the ranks depends on i only through h(i),
// so 251 sums suffice for all elements. The hash makes a block that arrives at the wrong place
// visible.
#pragma once

#include <array>
#include <cstdint>

namespace lambcast::validate {

constexpr std::uint32_t kPatternValues = 251;

constexpr std::uint32_t pattern_residue(std::uint64_t i) {
  return static_cast<std::uint32_t>(((i * 0x9E3779B97F4A7C15ULL) >> 32) % kPatternValues);
}

constexpr std::uint32_t pattern_value(int rank, std::uint64_t i) {
  return (static_cast<std::uint32_t>(rank) + pattern_residue(i)) % kPatternValues;
}

// Returns sums[h], the sum over the ranks of an element with residue h. Each value is taken modulo
// `values`.
inline std::array<float, kPatternValues> pattern_sums(int ranks,
                                                      std::uint32_t values = kPatternValues) {
  std::array<float, kPatternValues> sums{};
  for (std::uint32_t h = 0; h < kPatternValues; ++h) {
    for (int r = 0; r < ranks; ++r) {
      sums[h] += static_cast<float>((static_cast<std::uint32_t>(r) + h) % kPatternValues % values);
    }
  }
  return sums;
}

}  // namespace lambcast::validate
