// The passes of a step that no layout divides, and the sums or exchanges of gradients among them
// (gradient_reduction.h, gradient_exchange.h). All micro batches are equal.
#pragma once

#include "models/training/plan/step_draft.h"

namespace lambcast {

// Adds the micro batches. Throws Error (usage) if the step should be unrolled but is too large.
void add_micro_batches(StepDraft& draft);

}  // namespace lambcast
