// The parameters that one rank holds, chunk by chunk, and the groups that sum their gradients.
//
// For a GPT of width h on t ranks of tensor parallelism (Megatron-LM; Narayanan et al. 2021):
//   per layer        (12 h^2 + 7 h) / t + 6 h
//   first chunk      V h / t + s_max h more (token and position embedding)
//   last chunk       2 h more (last norm), and V h / t again if the head is a copy of the embedding
//                    on another stage, or an untied head
// V is padded to a multiple of 128 t when t > 1 (Megatron-LM, _vocab_size_with_padding).
#pragma once

#include <span>
#include <vector>

#include "models/parallel/parallel_layout.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/stage_split.h"
#include "models/shape/shape.h"

namespace lambcast::parallel {

struct RankParameters {
  // Parameters that are divided over tensor-parallel ranks; their gradients are summed over dp and
  // cp.
  double divided = 0;
  // Parameters that are the same on all tensor-parallel ranks. With sequence parallelism each rank
  // uses them for s / t tokens, and their gradients are summed over tp too.
  double whole = 0;
  // Parameters of the rank's experts; gradients are summed over the ranks with the same experts.
  double experts = 0;
  // Frozen parameters next to adapters.
  double frozen = 0;
  double quantized = 0;  // the part of `frozen` stored in Adapters::frozen_bits
  // The part of `divided` that is tied: embedding and head as one tensor on two stages, the first
  // and the last, which sum its gradients.
  double tied = 0;
  // The part of `divided` or `frozen` that consists of rows of the vocabulary.
  double vocabulary = 0;

  double total() const { return divided + whole + experts; }  // parameters with gradients
  double held() const { return total() + frozen; }
  RankParameters& operator+=(const RankParameters& other);  // adds those of another chunk
};

// Returns the share of a tensor on one of tp ranks; for the vocabulary it exceeds 1 / tp.
double tensor_share(TensorSplit split, const ModelShape& shape, int tp);

// Returns the trained elements of the whole model on one tensor rank: all stages and expert ranks
// together, with a tied head counted once. The rank's tensors, sliced or whole, are scaled in
// proportion to these numbers, separately for experts and for all others.
RankParameters sliced_parameters(const ModelShape& shape, const ParallelLayout& layout);

// Returns whether the model's head is its embedding, transposed.
bool has_tied_head(const ModelShape& shape);

// Returns the parameters by position. `contents` come from split_stages() for this pipeline.
// Tensors outside the blocks belong to the first chunk if they are registered before the blocks,
// else to the last.
std::vector<RankParameters> rank_parameters(const ModelShape& shape, const ParallelLayout& layout,
                                            const Pipeline& pipeline,
                                            std::span<const ChunkContent> contents);

}  // namespace lambcast::parallel
