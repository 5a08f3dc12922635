// Steps whose update fp16's dynamic loss scaling discards. The scale doubles after a window of good
// steps. In steady state the doubled scale overflows, and the step's update is left out (assumed:
// once per window). Further updates are left out at the beginning while the first scale is too
// high; only a log shows their number.
//
// In DeepSpeed skipped steps count as steps, so they do not lengthen a run of a given number of
// steps (runtime/engine.py: global_steps goes up with skipped_steps). With --skipped-steps, or
// phases (run_phases.h), they are added, which gives the time of a run with that many updates.
#pragma once

#include <optional>

#include "experiments/scenario/scenario.h"
#include "models/finding.h"

namespace lambcast {

// Returns the expected number of skipped steps among `steps`; 0 without dynamic loss scaling.
double expected_skipped_steps(const Precision& precision, std::int64_t steps);

// Returns a note on the skipped steps if the run does not include them.
std::optional<Finding> find_skipped_steps(const Scenario& scenario);

}  // namespace lambcast
