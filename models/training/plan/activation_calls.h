// Collectives that carry activations through the passes of one micro batch: of tensor, sequence and
// context parallelism, of adapters, and between stages. pipeline_plan.h has the place of each.
#pragma once

#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Writes the calls into `plan`, whose blocks are set already.
void plan_activations(PipelinePlan& plan, const TrainingPlan& training,
                      const parallel::RankGrid& grid);

}  // namespace lambcast
