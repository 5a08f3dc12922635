// Levels of programs on machines, and the prior for a program without measurements
// (topologies/program_level.h). The level of a stack (one program on one machine) is the time of
// its passes over that of the kernels forecast for them.
//
// r_i = ln(measured time / forecast time) is taken over the rows of stack j that send uncompressed
// gradients, expose communication for less than half of the step, and have transformer blocks: the
// level compares times of kernels, which include neither compression nor convolutional nets.
// Then
//
//   x_j = mean of r_i                    level of an unseen stack (unseen_stacks.h)
//   x_j = mean of r_i + ln(scale)        level of a stack in view, whose figures set parameters:
//                                        scale is stack.compute_scale of its machine (1 if none)
//   S^2 = mean over programs of the mean over their stacks of (x_j^2 - v_j)
//
// v_j is the variance of the errors of its GPU's kernels (models/device/rates_interval.h); it is 0
// for stacks in view, since rows of that GPU set its rates. All programs have equal weight, however
// many machines they were timed on; a source in view is one program. S and the number of programs
// are the prior, topologies/program_prior.toml. Most levels are near 1 and a few far off: passes of
// DeepSpeed-MoE in 2022 took twice as long.
//
// There is no prior per program family: among the unseen stacks, no family has three programs with
// a level (program_levels_test.cc), and those in view set rates.
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

// Returns the levels of the stacks that mostly compute, in their order.
std::vector<StackLevel> levels_of(const std::vector<UnseenStack>& stacks);

// Returns the levels of the sources' stacks, from the results of their rows.
std::vector<StackLevel> levels_in_view(const std::vector<SourceResult>& results);

// Returns all shipped levels: unseen stacks, then stacks in view.
std::vector<StackLevel> shipped_levels();

ProgramPrior learn_prior(const std::vector<StackLevel>& levels);

// Formats the prior as topologies/program_prior.toml.
std::string prior_text(const ProgramPrior& prior);

}  // namespace lambcast
