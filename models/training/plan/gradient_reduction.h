// How a step sums its gradients over the ranks: the buckets, how often they are reduced, and
// whether the backward pass continues meanwhile.
//
//   no ZeRO        after the last micro batch; a bucket closes once it exceeds 5e8 elements
//   BF16_Optimizer the same for its fp32 sums, one bucket per parameter group, sent as bf16
//   ZeRO stage 1   after the last micro batch, or with overlap_comm during its backward pass
//   ZeRO stage 2   after every micro batch, or with overlap_comm during every backward pass
//   Overlap::ddp   buckets of 25 MiB from the last layer backwards, in the last backward pass
//
// ZeRO closes a bucket before it would exceed reduce_bucket_size. With overlap_comm it has two
// buckets: the pass that fills one waits until the other is reduced. Buckets are all-reduced even
// with reduce_scatter, which only means that a rank keeps its own share of the sum:
// use_multi_rank_bucket_allreduce replaced a reduce to every rank. With the gathered weights, stage
// 1 sends
//
//   2 (n-1)/n S + (n-1)/n S      S = bytes of the gradients, and of the weights
//
// and stage 2 sends the first term for every micro batch.
//
// Source: DeepSpeed 0.15.4 and 0.16.5, runtime/engine.py (allreduce_gradients, allreduce_bucket),
// runtime/zero/stage_1_and_2.py (reduce_independent_p_g_buckets_and_remove_grads, average_tensor,
// allreduce_and_scatter), runtime/bf16_optimizer.py (get_grads_for_reduction).
#pragma once

#include <cstdint>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

struct GradientReduction {
  std::vector<std::int64_t> buckets;  // elements, in order of reduction
  bool each_micro_batch = false;      // else after or during the last one
  bool overlapped = false;            // with the backward pass
  bool double_buffered = false;       // a third bucket waits until the first one is reduced
  // Bytes of GPU memory traffic per element: for filling a bucket, and for all other work around
  // the collective.
  double fill_bytes = 0;
  double scale_bytes = 0;
};

GradientReduction gradient_reduction(const TrainingPlan& training);

// Whether the reduction overlaps the backward pass, at least that of the last micro batch.
bool overlaps_reduction(const TrainingPlan& training);

// Whether the framework reduces the sums of several micro batches after the last one's pass
// (Framework::reduces_sums), and there are several.
bool waits_for_sums(const TrainingPlan& training);

// Whether the momenta of a step of this kind are exchanged in buckets, as the backward pass makes
// gradients.
bool exchanges_momenta_in_hooks(const TrainingPlan& training, StepKind kind);

// Returns the elements at which a bucket closes, with Overlap::ddp or in a layout's framework.
double ddp_bucket_elements(const TrainingPlan& training);
// Returns the number of buckets for `elements` under a layout. PyTorch's buckets hold whole
// tensors.
std::int64_t bucket_count(const TrainingPlan& training, double elements);

// Returns the bytes of a gradient element on the wire. DeepSpeed sends fp32 sums in 16 bits, or in
// communication_data_type (runtime/zero/stage3.py, __avg_scatter_grads, at stage 3 too).
double gradient_bytes(const TrainingPlan& training);

}  // namespace lambcast
