// The collectives that carry activations through the passes of one micro batch: of tensor, sequence
// and context parallelism, of adapters, and between stages (pipeline_plan.h says where each
// stands).
#pragma once

#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Into `plan`, whose blocks are known.
void plan_activations(PipelinePlan& plan, const TrainingPlan& training,
                      const parallel::RankGrid& grid);

}  // namespace lambcast
