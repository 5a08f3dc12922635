// Resolves user input into a TrainingPlan. Flags, sweep points and a DeepSpeed file share one
// vocabulary, and every user error is raised here.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"
#include "models/deepspeed/config.h"
#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

struct Scenario {
  TrainingPlan training;
  // The DeepSpeed file, if there is one, with the flags written into it. training.recipe is made
  // from it, and messages and outputs use its names. `optimizer` is present.
  deepspeed::DeepSpeedConfig config;
  std::vector<Finding> findings;
  WhatIf asked;  // the resolved question, with values from files of other programs
};

// Resolves a what-if. Throws Error (usage) if it cannot be read or cannot run.
Scenario resolve(const WhatIf& what_if, Catalog& catalog);

// Returns the format of the products in the run's blocks.
std::string_view format_of_run(const TrainingPlan& training);

// Returns the overlap of gradient communication with the backward pass, including that of ZeRO.
Overlap overlap_of(const TrainingPlan& training);
// Returns the step at which compression starts: freeze_step, or var_freeze_step of 0/1 Adam. Plain
// optimizers have none.
std::optional<std::int64_t> freeze_step_of(const Recipe& recipe);

}  // namespace lambcast
