// The plan of a step as text: its operations with the stage of the pipeline they belong to, what
// they wait for and what they do; and under a layout the calls inside the passes of a micro batch,
// stage by stage, stages alike together.
#pragma once

#include <functional>
#include <string>

#include "models/training/plan/step_plan.h"

namespace lambcast {

std::string step_plan_text(const StepPlan& plan);

// These calls alone, each with what `also` has of it behind.
using AboutCall = std::function<std::string(const Call&)>;
std::string inside_passes(const PipelinePlan& plan, const AboutCall& also);

}  // namespace lambcast
