// Kernels on one rank of blocks of the same shape, with the times that a pass needs to place
// collectives between them and overlapping them (pass_price.h).
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/device/block_time.h"
#include "models/training/plan/expert_plan.h"
#include "models/training/plan/pipeline_plan.h"

namespace lambcast {

struct BlockKernels {
  BlockKernels(const BlockWork& work, const ExpertPlan* experts, const ActivationCalls& activations,
               const ActivationCalls& of_encoder, const GpuRates& rates);

  const BlockWork& work;
  const ExpertPlan* experts = nullptr;  // null for blocks without experts
  const ActivationCalls& activations;
  const ActivationCalls& of_encoder;  // used only by a decoder
  std::vector<Piece> forward, backward;

  // Returns the list that contains the pieces of `pass`. A repeated forward pass is part of the
  // backward list.
  const std::vector<Piece>& pieces_of(Pass pass) const {
    return pass == Pass::forward ? forward : backward;
  }
  Duration products(const std::vector<std::string_view>& names, Pass pass) const;
  Duration attention_core(Pass pass) const;

  // The first and last products around which tensor parallelism has its collectives. A parallel
  // block has one pair for both branches; the pair of an encoder's keys and values has no last
  // product.
  struct Pair {
    std::vector<std::string_view> first, last;
    const ActivationCalls& calls;
  };
  std::vector<Pair> pairs() const;
  // Whether a repeated forward pass issues the collectives between a block's products again.
  bool repeats_collectives() const;
  // Whether `pass` is a repeated forward pass that ends before the last of these products.
  bool ends_before(const std::vector<std::string_view>& products, Pass pass) const;
};

// Blocks of the same shape, without and with experts.
struct BlockKinds {
  BlockKernels dense;
  std::optional<BlockKernels> experts;
};

// Returns the blocks of one stack that lie in a chunk, or all its blocks if the plan has no stacks.
parallel::ChunkContent part_of(const parallel::ChunkContent& content, const PipelinePlan& plan,
                               std::size_t stack);

// Whether the first block of the stack lies in this part of a chunk.
bool begins(const parallel::ChunkContent& part, const BlocksAlike& stack);

// Returns the kernels of each stack, or of all blocks if there are none. Refers to `plan`.
std::vector<BlockKinds> kinds_of(const PipelinePlan& plan, const GpuRates& rates);

}  // namespace lambcast
