// A step while it is planned (step_plan.h): its inputs, which do not change, and the operations so
// far. The parts of a step add to it in this order: the passes with their sums of gradients
// (micro_batches.h without a layout, pipeline_passes.h under one), then the update (step_update.h).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/stage_ranks.h"
#include "models/training/plan/step_part.h"
#include "models/training/plan/step_plan.h"

namespace lambcast {

// The operations in the order in which they are planned. Ranks of one pipeline stage do the same,
// so each stage is planned once (rank class). An operation by default waits for the last ones of
// its stage.
class StepOperations {
 public:
  // Place of a collective: that of its stage, or of the first stage for a collective of several.
  enum class Among { stage, stages };

  // `places` are those of the first rank of each stage.
  explicit StepOperations(std::vector<Place> places)
      : places_(std::move(places)), last_(places_.size()) {}

  OpId add(int stage, StepPart part, Stream stream, std::vector<OpId> after, std::int64_t times = 1,
           Among among = Among::stage);

  // Adds an operation after the last ones of the stage. Calls run on the communication stream,
  // other work on the compute stream.
  void then(int stage, StepPart part, std::int64_t times = 1, Among among = Among::stage);

  // The operations that the next operation of a stage waits for.
  std::vector<OpId>& last(int stage) { return last_[static_cast<std::size_t>(stage)]; }

  const std::vector<PlanOp>& so_far() const { return ops_; }
  std::vector<PlanOp> take() { return std::move(ops_); }

 private:
  std::vector<Place> places_;
  std::vector<std::vector<OpId>> last_;
  std::vector<PlanOp> ops_;
};

struct StepDraft {
  const TrainingPlan& training;
  const DistinctStep& step;
  StageRanks ranks;
  std::optional<PipelinePlan> pipeline;  // under a layout
  StepOperations operations;

  // Whether an exchange replaces the reduction of gradients in this step.
  bool exchanges() const { return step.sums_gradients() && exchanges_gradients(training); }
  // Whether the backward pass exchanges momenta, bucket by bucket.
  bool hooks_momenta() const { return exchanges_momenta_in_hooks(training, step.kind); }
  // Whether weights are exchanged during the passes, which do not change them.
  bool exchanges_beside() const { return exchanges() && travels_beside(training.exchange); }
  // Whether buckets are exchanged in hooks of the backward pass.
  bool exchanges_in_hooks() const {
    return hooks_momenta() ||
           (exchanges() && !exchanges_beside() && training.exchange.is_overlapped());
  }

  // Returns compressed_allreduce of momenta with `elements` in all, or of one buffer whose shares
  // have `padded` elements.
  std::vector<StepPart> momenta(const ProcessGroup& among, double elements) const;
  std::vector<StepPart> buffer(const ProcessGroup& among, std::int64_t padded) const;
};

}  // namespace lambcast
