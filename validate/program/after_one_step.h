// The worth of one measured step, and of several: the first run of each unseen stack
// (unseen_stacks.h) sets the level of its program (level_fit.h), as a user would measure it, and
// the others are forecast with it. Several are the first of as many equal parts of its runs.
//
// Left out: stacks with fewer than one run more than are measured, runs that send fewer bits, runs
// of another framework than the first, to which its level does not apply, and stacks whose first
// run waits for its network, which sets no level; of the others, runs in which communication is
// exposed for half of the step and more.
#pragma once

#include <string>
#include <vector>

#include "validate/program/unseen_stacks.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

struct AfterOneStep {
  std::string program, machine;
  std::vector<SourceResult> before, after;  // the other runs, without and with the level
};

std::vector<AfterOneStep> after_one_step(const std::vector<UnseenStack>& stacks,
                                         std::size_t measured = 1);

// Scores over all runs of these stacks.
struct OneStepScore {
  ErrorScore before, after;
  double width_before = 1, width_after = 1;  // median ratio of the upper end to the forecast
};
OneStepScore score_of(const std::vector<AfterOneStep>& stacks);

// A line for each stack, then one over all, and one over all runs after three measured ones.
std::string one_step_table(const std::vector<AfterOneStep>& stacks,
                           const std::vector<AfterOneStep>& after_three);

}  // namespace lambcast
