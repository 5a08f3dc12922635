// What the ranks of a layout hold and compute, before any order of it: the layers and parameters of
// each pipeline chunk, and the work of one block. The plan of a step and its memory both start
// here.
#pragma once

#include "models/training/step_plan.h"

namespace lambcast {

// Which layers each chunk holds, and the parameters of one rank there, by position.
struct LayoutContents {
  std::vector<parallel::ChunkContent> chunks;
  std::vector<parallel::RankParameters> parameters;
};
LayoutContents contents_of(const TrainingPlan& training);

// What one micro batch computes in a block of one rank.
BlockWork block_work_of(const TrainingPlan& training, std::int64_t seq_len);

}  // namespace lambcast
