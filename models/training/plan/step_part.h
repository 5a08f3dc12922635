// A part of a step that one module writes, such as an exchange of gradients or an update on the
// host, and that the plan of the step (step_plan.h, layout_plan.h) puts in order.
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
