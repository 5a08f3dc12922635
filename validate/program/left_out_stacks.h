// Forecasts each unseen stack with the prior learned from the other programs (grade S), like a
// user's program on a machine without measurements of it.
//
// Half of the errors are expected above exp(0.6745 sqrt(S^2 + v + r^2)) - 1, with S the spread of
// levels, v the variance of the error of the GPU's kernels (program_levels.h), and r the spread of
// runs of one program (models/training/price/measured_program.h).
#pragma once

#include <string>
#include <vector>

#include "validate/program/unseen_stacks.h"

namespace lambcast {

struct LeftOutStack {
  UnseenStack stack;
  std::vector<SourceResult> results;
  ErrorScore score;
  double half_width = 0;  // mean over its rows, as a logarithm
};
struct LeftOutStacks {
  std::vector<LeftOutStack> stacks;
  double of_medians = 0;  // median of the stacks' medians
  double of_levels = 0;   // same for stacks with a level, which mostly compute
  double limit = 0;       // expected median error from the spread of programs
  int rows = 0, inside = 0;
};
LeftOutStacks leave_out_stacks();

// Returns the rows of all stacks, in their order.
std::vector<SourceResult> results_of(const LeftOutStacks& left_out);

// Returns a line for each stack, then one for all.
std::string left_out_table(const LeftOutStacks& left_out);

}  // namespace lambcast
