// Contents of a layout's ranks, without an order of execution: the layers and parameters of each
// pipeline chunk, and the work of one block. The plan of a step and its memory forecast are both
// based on them.
#pragma once

#include "models/training/plan/step_plan.h"

namespace lambcast {

// The layers of each chunk, and the parameters of one rank there, by position.
struct LayoutContents {
  std::vector<parallel::ChunkContent> chunks;
  std::vector<parallel::RankParameters> parameters;
};
LayoutContents contents_of(const TrainingPlan& training);

// Returns the run's settings that determine the activations of a rank.
parallel::ActivationSetting activation_setting(const TrainingPlan& training, std::int64_t seq_len);

// Returns the computation of one micro batch's passes without collectives: the chunks, and the work
// of their blocks.
PipelinePlan computation_of(const TrainingPlan& training, std::int64_t seq_len);

// Returns the number of tensors that the optimizer of one rank gets, averaged over stages. If
// experts are registered one by one, a rank has the tensors of E / ep experts; if one tensor holds
// all experts of a layer, it has a part of that tensor.
double optimized_tensors(const ModelShape& shape, const parallel::ParallelLayout& layout);

// Returns the work of one micro batch in a block of one rank. For a pyramid it is a block of the
// last stage, or of `stage`; for an encoder-decoder a block of the encoder.
BlockWork block_work_of(const TrainingPlan& training, std::int64_t seq_len);
BlockWork block_work_of(const TrainingPlan& training, const PyramidStage& stage);

// Whether torch.autocast is active in the passes. In fp32 it has nothing to cast.
bool autocasts(const Parallelism& how);

// Returns the stages of an image model, which run on one rank (experiments/scenario/layout_choice.h
// refuses to divide them), or an encoder and its decoder; empty for other models.
std::vector<BlocksAlike> stacks_of(const TrainingPlan& training, std::int64_t seq_len);

}  // namespace lambcast
