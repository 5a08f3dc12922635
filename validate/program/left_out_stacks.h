// Each unseen stack forecast with the prior that the other programs give (grade S): as the program
// of a user, on a machine that nobody measured it on.
//
// Half of the errors of such forecasts are expected above exp(0.6745 sqrt(S^2 + v + r^2)) - 1, with
// S the spread of levels, v the variance of what kernels of the GPU are off (program_levels.h), and
// r the spread of runs of one program (models/training/price/measured_program.h).
#pragma once

#include <string>
#include <vector>

#include "validate/program/unseen_stacks.h"

namespace lambcast {

struct LeftOutStack {
  UnseenStack stack;
  std::vector<SourceResult> results;
  ErrorScore score;
  double half_width = 0;  // mean over its rows, in logarithms
};
struct LeftOutStacks {
  std::vector<LeftOutStack> stacks;
  double of_medians = 0;  // the median of the stacks' medians
  double of_levels = 0;   // the same of stacks that have a level, which mostly compute
  double limit = 0;       // the median error that the spread of programs sets
  int rows = 0, inside = 0;
};
LeftOutStacks leave_out_stacks();

// The rows of all stacks, in their order.
std::vector<SourceResult> results_of(const LeftOutStacks& left_out);

// A line for each stack, then one over all.
std::string left_out_table(const LeftOutStacks& left_out);

}  // namespace lambcast
