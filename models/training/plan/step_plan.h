// Plan of one optimizer step, without times: operations in order, each on a stream of its rank,
// with the bytes that it moves or the work that it computes. The plan can be printed, priced
// (price.h), executed (step.h) and counted; it contains no bandwidth, latency or time.
//
// A step is `gas` micro batches forward and backward. After the last backward pass follow
//
//   uniform, warmup   gradients summed over ranks: buckets filled, all_reduced, scaled, copied back
//                     (with ZeRO or Overlap::ddp earlier: gradient_reduction.h), then the optimizer
//   compression       overflow flag all_reduced, optimizer up to the momentum, compressed_allreduce
//                     (compressed_allreduce.h) once per fused buffer (LAMB), per parameter group
//                     (Adam, fp16; with bf16 for the rank's share of it) or per tensor (Adam, fp32)
//   silent            no communication (0/1 Adam between its sync points)
//
// If the wrapper shards the optimizer (models/recipe/wrapper.h), weights are all_gathered after
// every step, group by group. DeepSpeed's stage 0 has no overlap.
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
