// Expected value of every element of a collective's result if each rank sent the pattern.
#pragma once

#include <array>
#include <cstdint>

#include "validate/measure/pattern.h"
#include "validate/measurement.h"

namespace lambcast::validate {

constexpr float kUnset = -1;  // neither a value of the pattern nor a sum of such values

inline float pattern_float(int rank, std::uint64_t i) {
  return static_cast<float>(pattern_value(rank, i));
}

// Returns the element of rank r + 1, given that of rank r.
inline float pattern_of_next_rank(float value) {
  return value + 1 == static_cast<float>(kPatternValues) ? 0 : value + 1;
}

struct ExpectedResult {
  Operation operation;
  int ranks;
  int root;             // for a broadcast or a reduce
  std::uint64_t block;  // elements that a rank sends to, or receives from, each other rank
  std::array<float, kPatternValues> sums = pattern_sums(ranks);

  // Returns element i of the receive buffer of this rank.
  float at(int rank, std::uint64_t i) const;
};

}  // namespace lambcast::validate
