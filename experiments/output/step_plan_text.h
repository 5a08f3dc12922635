// Formats the plan of a step as text: each operation with its pipeline stage, its predecessors and
// its work. Under a layout it adds the calls inside the passes of a micro batch, stage by stage;
// equal stages are merged.
#pragma once

#include <functional>
#include <string>

#include "models/training/plan/step_plan.h"

namespace lambcast {

std::string step_plan_text(const StepPlan& plan);

// Formats only the calls inside passes, each followed by the text that `also` returns for it.
using AboutCall = std::function<std::string(const Call&)>;
std::string inside_passes(const PipelinePlan& plan, const AboutCall& also);

}  // namespace lambcast
