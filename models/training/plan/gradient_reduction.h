// How a step sums its gradients over the ranks: in which pieces, how often, and whether the
// backward pass goes on meanwhile.
//
//   no ZeRO        after the last micro batch; a bucket closes once it exceeds 5e8 elements
//   BF16_Optimizer the same of its fp32 sums, one per parameter group, sent as bf16
//   ZeRO stage 1   after the last micro batch, or with overlap_comm during its backward pass
//   ZeRO stage 2   after every micro batch, or with overlap_comm during every backward pass
//   Overlap::ddp   25 MiB from the last layer backwards, during the last backward pass
//
// ZeRO closes a bucket before it would exceed reduce_bucket_size, has two of them with overlap_comm
// (the pass that fills one waits for the other to be reduced) and all_reduces them all the same:
// with reduce_scatter a rank only keeps its own share of the sum, since
// use_multi_rank_bucket_allreduce took the place of a reduce to every rank. With the weights
// gathered, stage 1 sends
//
//   2 (n-1)/n S + (n-1)/n S      S = bytes of the gradients, and of the weights
//
// and stage 2 the first term for every micro batch.
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
  std::vector<std::int64_t> buckets;  // elements, in the order they are reduced
  bool each_micro_batch = false;      // else after or during the last
  bool overlapped = false;            // with the backward pass
  bool double_buffered = false;       // a third bucket waits for the first
  // Traffic of GPU memory per element: filling a bucket, and all around the collective itself.
  double fill_bytes = 0;
  double scale_bytes = 0;
};

GradientReduction gradient_reduction(const TrainingPlan& training);

// Whether the backward pass goes on meanwhile, of the last micro batch at least.
bool overlaps_reduction(const TrainingPlan& training);

// Whether the momenta of such a step are exchanged in buckets, as the backward pass makes
// gradients.
bool exchanges_momenta_in_hooks(const TrainingPlan& training, StepKind kind);

// Elements at which a bucket of Overlap::ddp closes, or one of a layout's framework.
double ddp_bucket_elements(const TrainingPlan& training);
// Returns the number of buckets for `elements` under a layout. PyTorch's buckets hold whole
// tensors.
std::int64_t bucket_count(const TrainingPlan& training, double elements);

// Returns the bytes of one gradient element on the wire. DeepSpeed sends fp32 sums in 16 bits, or
// in communication_data_type (runtime/zero/stage3.py, __avg_scatter_grads, at stage 3 too).
double gradient_bytes(const TrainingPlan& training);

}  // namespace lambcast
