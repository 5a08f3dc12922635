// Flags that make a run fit if it exceeds the memory. Each remedy was forecast to fit.
//
//   a smaller micro batch      with more gradient accumulation, so that the batch stays
//   the kernels of kernels/    whose exchange needs fewer temporaries (1-bit optimizers)
//   a higher ZeRO stage        if DeepSpeed has it for the optimizer; with a smaller micro batch if
//                              both are needed
//   a GPU with more memory     the smallest sufficient device preset
//
// Under a layout, the kernels and the stage are replaced by the first change of each kind that
// suffices alone: tokens copied to their experts (--expert-routing), more recomputation
// (--recompute), states shared by more ranks (--zero-stage, to 3), the model divided over more
// ranks (--tp within a node, --pp; data parallelism shrinks and the batch stays), fewer experts per
// rank (--ep), and DeepSpeed's Adam on the host (--offload-optimizer cpu). If none of these
// suffices, and neither does a smaller micro batch, each is tried with a smaller micro batch, then
// also with full recomputation. No remedy names an option that is already set.
//
// Not tried: a layout for a run without one.
#pragma once

#include <string>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns remedies such as "--micro-batch 8 --grad-accum 16 (13.1 GB)", the least intrusive first;
// empty if nothing helps.
std::vector<std::string> memory_remedies(const TrainingPlan& training);

// Returns the sentence for a run that does not fit: the remedies, or the memory of even the
// smallest run.
std::string how_to_fit(const TrainingPlan& training);

}  // namespace lambcast
