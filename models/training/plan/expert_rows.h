// Returns the rows that a rank computes for each expert choice of its tokens. With a capacity
// factor these are the slots, full or not. Dropless, they are the rows of the rank with the most,
// if ranks share the experts. A rank with all experts computes the choices of its own tokens, even
// if they are unbalanced: only the sizes of its products differ.
#pragma once

#include "models/training/plan/parallelism.h"

namespace lambcast {

inline double rows_per_choice(const Parallelism& how) {
  const bool shares = how.layout.ep > 1 || how.experts.capacity_factor > 0;
  return shares ? visits(how.experts, 1) : 1;
}

}  // namespace lambcast
