// Contents of a layout's ranks, in no order of execution: the layers and parameters of each
// pipeline chunk, and the work of one block. The plan of a step and its memory forecast both start
// here.
#pragma once

#include "models/training/plan/step_plan.h"

namespace lambcast {

// Which layers each chunk holds, and the parameters of one rank there, by position.
struct LayoutContents {
  std::vector<parallel::ChunkContent> chunks;
  std::vector<parallel::RankParameters> parameters;
};
LayoutContents contents_of(const TrainingPlan& training);

// Returns the computation of one micro batch's passes, without collectives: the chunks and the work
// of their blocks.
PipelinePlan computation_of(const TrainingPlan& training, std::int64_t seq_len);

// Tensors that the optimizer of one rank is given, of a stage in the mean. Of E experts that are
// registered one by one a rank holds those of E / ep; where one tensor has all of a layer's, its
// part of that one.
double optimized_tensors(const ModelShape& shape, const parallel::ParallelLayout& layout);

// Returns the work of one micro batch in a block of one rank. For a pyramid the block is of its
// last stage, or of `stage`; for an encoder-decoder of its encoder.
BlockWork block_work_of(const TrainingPlan& training, std::int64_t seq_len);
BlockWork block_work_of(const TrainingPlan& training, const PyramidStage& stage);

// Whether torch.autocast is about the passes: in fp32 it has nothing to cast.
bool autocasts(const Parallelism& how);

// Stages of images, on one rank (experiments/scenario/layout_choice.h refuses to divide them); an
// encoder and its decoder; none of others.
std::vector<BlocksAlike> stacks_of(const TrainingPlan& training, std::int64_t seq_len);

}  // namespace lambcast
