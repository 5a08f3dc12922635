// A part of a step, such as an exchange of gradients or an update on the host. One module creates
// it, and the plan of the step (step_draft.h) puts all parts in order.
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
