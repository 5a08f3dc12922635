// A piece of a step that another module writes and the plan of the step (step_plan.h,
// layout_plan.h) sets in its order: of an exchange of gradients, of an update on the host.
#pragma once

#include <string>

#include "models/training/plan/work.h"
#include "sim/engine/task_graph.h"

namespace lambcast {

struct StepPart {
  std::string name;
  Category part = Category::gradient_comm;
  Work work;
};

}  // namespace lambcast
