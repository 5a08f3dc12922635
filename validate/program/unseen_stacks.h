// Training runs of stacks that no number of the model was fitted to, and the prior of a program's
// level that they give. A stack is one program on one machine (cluster and device) in one
// precision.
//
// With r_i = ln(measured time / forecast time) of the rows of stack j that send gradients as they
// are and whose communication is exposed for less than half of the step (kernels that code
// gradients are not of the level), if the model has transformer blocks (the level is of kernels, by
// which convolutional nets are not priced) and the source states batch and precision,
//
//   x_j = mean of r_i                          level of the stack
//   S^2 = mean over programs of the mean over their stacks of (x_j^2 - v_j)
//
// v_j is the variance of what kernels of its GPU are off (models/device/rates_interval.h). Each
// program weighs alike, however many machines it was timed on. S and the number of programs are
// the prior, topologies/program_prior.toml.
//
// A stack left out is forecast with the prior of the others (grade S). Half of the errors of such
// forecasts are expected above exp(0.6745 sqrt(S^2 + v + r^2)) - 1, with r the spread of runs of
// one program (models/training/price/measured_program.h).
//
// Levels are not told apart by program family: no family has three programs with a level from which
// its own could be learned (unseen_stacks_test.cc).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "topologies/program_level.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

struct UnseenStack {
  std::string program, machine;  // machine: cluster, device and precision
  std::string framework;         // word of --framework
  std::vector<SourceFigure> rows;
  bool is_stated = true;  // whether the source says all that the forecast needs
  // Names of its rows that send fewer bits, and of the plain run that each is compared with.
  std::vector<std::pair<std::string, std::string>> plain_runs = {};
};

// The stacks that ship, in the order of the file.
std::vector<UnseenStack> unseen_stacks();

struct StackLevel {
  std::string program, machine, framework;
  double log = 0;       // x_j
  double variance = 0;  // v_j
};

// Levels of the stacks that mostly compute, in their order.
std::vector<StackLevel> levels_of(const std::vector<UnseenStack>& stacks);

ProgramPrior learn_prior(const std::vector<StackLevel>& levels);

// topologies/program_prior.toml, learned from these.
std::string prior_text(const ProgramPrior& prior);

// A stack forecast with the prior of the others.
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
