// Flags that make a run fit whose memory is exceeded. Each remedy named was forecast, and fits.
//
//   a smaller micro batch      with as many more micro steps, so that the batch stays
//   the kernels of kernels/    whose exchange needs fewer temporaries (1-bit optimizers)
//   a higher ZeRO stage        if DeepSpeed has it for the optimizer; with a smaller micro batch if
//                              both are needed
//   a GPU with more memory     the smallest of the device profiles that will do
//
// Under a layout, the kernels and the stage are replaced by the first change of each kind that
// suffices by itself: tokens copied to their experts (--expert-routing), recomputation of more
// (--recompute), states shared by more ranks (--zero-stage, to 3), the model divided by more (--tp
// within a node, --pp; data parallelism shrinks and the batch stays), fewer experts to a rank
// (--ep), and DeepSpeed's Adam on the host (--offload-optimizer cpu). If none suffices, nor a
// smaller micro batch, each is tried with a smaller micro batch, then with full recomputation too.
// No remedy names an option already in force.
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
