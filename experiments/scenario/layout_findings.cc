#include "experiments/scenario/layout_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "models/training/plan/weight_sharing.h"

namespace lambcast {
namespace {

using parallel::PipelineSchedule;
using parallel::Sharding;

// Returns a note on a kernel that was not timed on the GPU.
std::optional<Finding> find_untimed_attention(AttentionKernel kernel, const Device& device) {
  const AttentionKernel timed = timed_as(kernel, *device.rates);
  if (timed == kernel) return std::nullopt;
  return Finding{Severity::note, "attention-untimed",
                 fmt::format("--attention: no measured time of {} on {}; assumed: that of {}",
                             name_of(kernel), device.name, name_of(timed))};
}

// Returns a warning on sequence parallelism: Megatron-DeepSpeed divides activations that way,
// DeepSpeed itself does not.
std::optional<Finding> find_foreign_sequence(const Parallelism& how) {
  if (how.framework.name != FrameworkName::deepspeed || how.layout.tp == 1 ||
      !how.sequence_parallel)
    return std::nullopt;
  return Finding{Severity::warning, "sequence-of-framework",
                 "--sequence-parallel: DeepSpeed's tensor parallelism (AutoTP) does not divide "
                 "activations: the forecast divides them as Megatron-DeepSpeed does, with all else "
                 "as in DeepSpeed; try: --framework megatron"};
}

// Returns a note if the file's bucket is smaller than a matrix, since matrices are gathered whole.
std::optional<Finding> find_small_prefetch(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const std::int64_t asked = training.recipe.zero.prefetch;
  if (how.framework.name != FrameworkName::deepspeed || how.sharding != Sharding::weights ||
      asked == Zero{}.prefetch)
    return std::nullopt;
  double block = 0;
  for (const Tensor& tensor : training.model->tensors)
    if (tensor.layer == 0 && !tensor.expert) block += static_cast<double>(tensor.elements);
  const int matrices = gathered_matrices(*training.model, how);
  const auto least = static_cast<std::int64_t>(block / std::max(1, matrices));
  if (asked >= least) return std::nullopt;
  return Finding{Severity::note, "prefetch-below-matrix",
                 fmt::format("stage3_prefetch_bucket_size: counts as {}: the {} matrices of a "
                             "block are gathered one at a time, each whole",
                             least, matrices)};
}

// Returns a warning for a schedule that the framework itself lacks, although a fork may have it.
std::optional<Finding> find_foreign_schedule(const Parallelism& how) {
  if (how.framework.name != FrameworkName::deepspeed || how.layout.pp == 1 ||
      how.schedule == PipelineSchedule::one_f_one_b)
    return std::nullopt;
  return Finding{
      Severity::warning, "schedule-of-framework",
      fmt::format("DeepSpeed's pipelines run 1f1b alone (runtime/pipe/schedule.py): "
                  "the forecast is of {}, with all else as in DeepSpeed; try: --framework megatron",
                  parallel::name_of(how.schedule))};
}

int stages_of_first_node(const TrainingPlan& training) {
  const parallel::RankGrid grid = parallel::dense_grid(training.parallelism->layout);
  std::set<int> stages;
  for (int rank = 0; rank < training.gpus_per_node; ++rank)
    stages.insert(
        parallel::coordinates_of(grid, rank)[static_cast<std::size_t>(parallel::Axis::pp)]);
  return static_cast<int>(stages.size());
}

// Returns a note if passes of several stages send gradients or weights over the same NICs. The two
// network models treat the overlap differently.
std::optional<Finding> find_meeting_passes(const TrainingPlan& training) {
  const parallel::Sharding sharding = training.parallelism->sharding;
  const bool in_passes =
      sharding == parallel::Sharding::gradients || sharding == parallel::Sharding::weights;
  if (!in_passes || training.nodes() == 1 || training.parallelism->layout.pp == 1)
    return std::nullopt;
  const int stages = stages_of_first_node(training);
  if (stages == 1) return std::nullopt;
  return Finding{Severity::note, "passes-meet",
                 fmt::format("the passes of {} pipeline stages share the NICs of a node: how they "
                             "meet there is approximated, and --network analytic and flow differ "
                             "by up to a factor of 2 (1.9 seen)",
                             stages)};
}

}  // namespace

std::vector<Finding> find_of_layout(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  std::vector<Finding> findings;
  for (const auto& finding : {find_foreign_schedule(how), find_foreign_sequence(how),
                              find_untimed_attention(how.attention, *training.device),
                              find_small_prefetch(training), find_meeting_passes(training)})
    if (finding) findings.push_back(*finding);
  if (is_onebit(training.optimizer()) && is_lamb(training.optimizer()) && how.layout.tp > 1)
    findings.push_back(
        {Severity::warning, "lamb-per-shard",
         "with tensor parallelism, DeepSpeed's LAMB computes a trust ratio per tensor shard, so "
         "its "
         "updates differ from LAMB on whole tensors; try: --tp 1, or check convergence"});
  return findings;
}

}  // namespace lambcast
