// One step of every kind as a timeline that Perfetto and chrome://tracing open (Trace Event Format,
// JSON; times in microseconds).
//
//   process    a kind of step: "warmup step (99 of the run)"
//   thread     a stream of a rank class: "compute", under a pipeline "stage 0: compute"; and one of
//              the micro batches, if the step goes through them one by one. Passes under a
//              layout have more, for their layers, collectives and sends (pipeline_trace.h)
//   slice      an operation; its category is the part of the step that it counts to. args state
//              its bytes, op, group, algorithm and the interval of its time
//   arrow      an operation of another thread that it waits for
//
// A step is written out micro batch by micro batch and layer by layer, in the order that they run;
// under a layout slot by slot. If that is too much for viewers, equal passes are merged.
#pragma once

#include <cstddef>
#include <string>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Limit of the passes of a step that are drawn one by one; more are merged.
inline constexpr std::int64_t most_traced_passes = 50'000;

std::string chrome_trace(const TrainingPlan& training);

}  // namespace lambcast
