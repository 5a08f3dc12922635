// For tests: every algorithm with each of its operations, except algorithms in which switches
// reduce, since these need a transport that supports it.
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/algorithms.h"

namespace lambcast {

struct AlgorithmCase {
  std::string algorithm;
  Op op;
};

// Returns the cases for the ranks of `group`.
inline std::vector<AlgorithmCase> algorithm_cases(const ProcessGroup& group) {
  std::vector<AlgorithmCase> cases;
  for (const std::string& algorithm : algorithm_names()) {
    if (algorithm.starts_with("nvls") || algorithm.starts_with("collnet")) continue;
    for (std::size_t op = 0; op < op_count; ++op)
      if (supports(algorithm, static_cast<Op>(op), group))
        cases.push_back({algorithm, static_cast<Op>(op)});
  }
  return cases;
}

}  // namespace lambcast
