// Levels of programs on machines, and the prior of a program that nobody measured on the user's
// (topologies/program_level.h). The level of a stack, one program on one machine, is how much
// longer its passes take than the kernels that are forecast for them.
//
// With r_i = ln(measured time / forecast time) of the rows of stack j that send gradients as they
// are and whose communication is exposed for less than half of the step (kernels that code
// gradients are not of the level), if the model has transformer blocks (the level is of kernels, by
// which convolutional nets are not priced),
//
//   x_j = mean of r_i                    level of an unseen stack (unseen_stacks.h)
//   x_j = mean of r_i + ln(scale)        of a stack in view, whose figures set scale =
//                                        stack.compute_scale of its machine (1 if they set none)
//   S^2 = mean over programs of the mean over their stacks of (x_j^2 - v_j)
//
// v_j is the variance of what kernels of its GPU are off (models/device/rates_interval.h); 0 in
// view, where rows of that GPU set its rates. Each program weighs alike, however many machines it
// was timed on: a source in view is a program. S and the number of programs are the prior,
// topologies/program_prior.toml. Most levels lie near 1 and a few far off: of DeepSpeed-MoE in 2022
// the passes took twice as long.
//
// Levels are not told apart by program family: of the unseen stacks, no family has three programs
// with a level (program_levels_test.cc), and those in view set rates.
#pragma once

#include <string>
#include <vector>

#include "topologies/program_level.h"
#include "validate/program/unseen_stacks.h"

namespace lambcast {

struct StackLevel {
  std::string program, machine, framework;
  double log = 0;       // x_j
  double variance = 0;  // v_j
};

// Levels of the stacks that mostly compute, in their order.
std::vector<StackLevel> levels_of(const std::vector<UnseenStack>& stacks);

// Levels of the sources' stacks, from the results of their rows.
std::vector<StackLevel> levels_in_view(const std::vector<SourceResult>& results);

// All that ship: unseen stacks, then stacks in view.
std::vector<StackLevel> shipped_levels();

ProgramPrior learn_prior(const std::vector<StackLevel>& levels);

// topologies/program_prior.toml, learned from these.
std::string prior_text(const ProgramPrior& prior);

}  // namespace lambcast
