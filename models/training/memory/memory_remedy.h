// What makes a run fit into memory that does not, in flags: each remedy named was forecast, and
// fits.
//
//   a smaller micro batch      with as many more micro steps, so that the batch stays
//   the kernels of kernels/    whose exchange needs fewer temporaries (1-bit optimizers)
//   a higher ZeRO stage        where DeepSpeed has it for the optimizer; with a smaller micro batch
//                              where it takes both
//   a GPU with more memory     the smallest of the device profiles that will do
//
// Under a layout, instead of the kernels and the stage, the first of each that is enough by itself:
// tokens copied to their experts (--expert-routing), recomputation of more (--recompute), states
// shared by more (--zero-stage, to 3), the model divided by more (--tp within a node, --pp), data
// parallelism giving way and the batch staying, fewer experts to a rank (--ep), and DeepSpeed's
// Adam on the host (--offload-optimizer cpu). Where none is, nor a smaller micro batch, each with a
// smaller micro batch; where that is not enough, with all recomputed too. None names what is in
// force.
//
// Not tried: a layout for a run that has none.
#pragma once

#include <string>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// "--micro-batch 8 --grad-accum 16 (13.1 GB)", the least intrusive first. Empty: nothing helps.
std::vector<std::string> memory_remedies(const TrainingPlan& training);

// The sentence for a run that does not fit: the remedies, or what even the smallest run holds.
std::string how_to_fit(const TrainingPlan& training);

}  // namespace lambcast
