// Steps that fp16's dynamic loss scaling does in vain. It doubles the scale after a window of good
// steps; in steady state the doubled one overflows, and the step's update is left out (assumed:
// once a window). So it goes at the beginning too, as often as the first scale is too high: that
// only a log tells.
//
// A run of so many steps is not longer for them where they count as steps, as DeepSpeed counts them
// (runtime/engine.py: global_steps goes up with skipped_steps). With --skipped-steps, or phases
// (run_phases.h), they are added: what a run takes whose updates are counted.
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
