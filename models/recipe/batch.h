// Samples of one optimizer step:
//
//   train [samples per step] = micro [samples per rank and pass] * gas * data-parallel ranks
#pragma once

#include <cstdint>

namespace lambcast {

struct Batch {
  std::int64_t train = 0;
  std::int64_t micro = 0;
  std::int64_t gas = 0;  // micro batches whose gradients are accumulated
  friend bool operator==(const Batch&, const Batch&) = default;
};

}  // namespace lambcast
