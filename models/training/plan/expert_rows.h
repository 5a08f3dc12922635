// Rows that a rank computes for each expert that one of its tokens chooses: to a capacity its
// places, full or not; dropless, those of the fullest of the ranks that share the experts. A rank
// that has all of them computes what its own tokens choose, however uneven: only the products of
// its experts differ in size.
#pragma once

#include "models/training/plan/parallelism.h"

namespace lambcast {

inline double rows_per_choice(const Parallelism& how) {
  const bool shares = how.layout.ep > 1 || how.experts.capacity_factor > 0;
  return shares ? visits(how.experts, 1) : 1;
}

}  // namespace lambcast
