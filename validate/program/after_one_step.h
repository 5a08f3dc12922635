// The value of one measured step, and of several. The first run of each unseen stack
// (unseen_stacks.h) sets the level of its program (level_fit.h), like a user's measurement, and its
// other runs are forecast with it. For several measured steps, the runs of a stack are divided into
// as many equal parts, and the first run of each part is taken.
//
// Left out are stacks with no run beyond the measured ones, and stacks whose first run waits for
// its network, which sets no level. Of the other stacks, runs are left out that send fewer bits,
// that use another framework, to which the level does not apply, or in which communication is
// exposed for half of the step or more.
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

// Returns a line for each stack, then one over all, and one over all runs after three measured
// ones.
std::string one_step_table(const std::vector<AfterOneStep>& stacks,
                           const std::vector<AfterOneStep>& after_three);

}  // namespace lambcast
