// Collectives that carry activations through the passes of one micro batch: those of tensor,
// sequence and context parallelism, of adapters, and between stages. pipeline_plan.h defines when
// each is called.
#pragma once

#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Adds the calls to `plan`, whose blocks must be set.
void plan_activations(PipelinePlan& plan, const TrainingPlan& training,
                      const parallel::RankGrid& grid);

}  // namespace lambcast
