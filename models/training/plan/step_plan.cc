#include "models/training/plan/step_plan.h"

#include "models/training/plan/micro_batches.h"
#include "models/training/plan/pipeline_passes.h"
#include "models/training/plan/step_update.h"

namespace lambcast {

std::string_view name_of(Stream stream) {
  return stream == Stream::compute ? "compute" : "communication";
}

StepPlan plan_step(const TrainingPlan& training, const DistinctStep& step) {
  StageRanks ranks = stage_ranks(training);
  const int stages = ranks.pipeline.stages;
  StepOperations operations(ranks.places());
  StepDraft draft{training, step, std::move(ranks), {}, std::move(operations)};
  if (training.parallelism)
    add_pipeline_passes(draft);
  else
    add_micro_batches(draft);
  add_agreement(draft);
  for (int stage = 0; stage < stages; ++stage) add_update(draft, stage);
  return {draft.operations.take(), step.seq_len, stages, std::move(draft.pipeline)};
}

}  // namespace lambcast
