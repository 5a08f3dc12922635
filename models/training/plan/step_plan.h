// Plan of one optimizer step, without times: operations in order, each on a stream of its rank,
// with the bytes that it moves or the work that it computes. The plan can be printed, priced
// (price.h), executed (step.h) and counted; it contains no bandwidth, latency or time.
//
// A step is planned in this order, for every class of equal ranks: the passes of all micro batches
// with the sums or exchanges of gradients among them, the agreement on overflow, the update of the
// weights, the exchange of momenta, and the gathering of updated weights (step_update.h).
//
//   without a layout   `gas` micro batches forward and backward; each pass is one operation
//                      (micro_batches.h). After the last backward pass, buckets of gradients are
//                      filled, all_reduced, scaled and copied back; with ZeRO or Overlap::ddp
//                      earlier (gradient_reduction.h)
//   under a layout     the passes of each pipeline stage, in segments (pipeline_passes.h)
//
// Steps of kind `compression` exchange momenta instead of gradients (compressed_allreduce.h);
// `silent` steps communicate nothing (0/1 Adam between its sync points). The `dry_run` of a 1-bit
// optimizer updates nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/work.h"
#include "sim/engine/task_graph.h"

namespace lambcast {

// A stream of a rank, which executes its operations one at a time.
enum class Stream { compute, communication };
std::string_view name_of(Stream stream);

using OpId = std::uint32_t;

struct PlanOp {
  std::string name;
  Category part = Category::optimizer;
  Stream stream = Stream::compute;
  Work work;
  std::int64_t times = 1;  // equal operations in a row
  std::vector<OpId> after;
  int rank_class = 0;  // class of equal ranks: the stage of a pipeline
};

struct StepPlan {
  std::vector<PlanOp> ops;  // an operation follows all operations that it waits for
  std::int64_t seq_len = 0;
  int rank_classes = 1;
  std::optional<PipelinePlan> pipeline;  // to which StageWork refers
};

// Returns the plan of a step. Throws Error (usage) if it should be unrolled but is too large.
StepPlan plan_step(const TrainingPlan& training, const DistinctStep& step);

}  // namespace lambcast
