// Expected value of every element of a collective's result if each rank sent the pattern.
#pragma once

#include <array>
#include <cstdint>

#include "validate/measure/data_type.h"
#include "validate/measure/pattern.h"
#include "validate/measurement.h"

namespace lambcast::validate {

constexpr bool has_sum(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
         operation == Operation::reduce;
}

constexpr float kUnset = -1;  // neither a value of the pattern nor a sum of such values

// Returns the value of a buffer's elements before a collective.
constexpr float unset_value(DataType type) { return type == DataType::uint8 ? 255 : kUnset; }

// Returns the number of different values of input elements. Elements that are added in 8 or 16 bits
// are 0 or 1, since such sums are exact only for small numbers (Open MPI 4.1 adds uint8 with
// saturation).
constexpr std::uint32_t element_values(DataType type, Operation operation) {
  return type != DataType::float32 && has_sum(operation) ? 2 : kPatternValues;
}

// Returns element i of the input of a rank.
inline float pattern_element(DataType type, Operation operation, int rank, std::uint64_t i) {
  return static_cast<float>(pattern_value(rank, i) % element_values(type, operation));
}

// Number of ranks up to which sums are exact: integers up to 2^8 in bf16, 2^11 in fp16.
constexpr int most_exact_ranks(DataType type) {
  constexpr int most[] = {66'000, 2048, 256, 254};  // 255 in uint8 is the unset value
  return most[static_cast<int>(type)];
}

struct ExpectedResult {
  Operation operation;
  int ranks;
  int root;             // for a broadcast or a reduce
  std::uint64_t block;  // elements that a rank sends to, or receives from, each other rank
  DataType type = DataType::float32;
  std::array<float, kPatternValues> sums = pattern_sums(ranks, element_values(type, operation));

  // Returns element i of the receive buffer of this rank.
  float at(int rank, std::uint64_t i) const;
};

}  // namespace lambcast::validate
