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
  const ExpertPlan* experts = nullptr;  // of blocks that have them
  const ActivationCalls& activations;
  const ActivationCalls& of_encoder;  // of a decoder's; else unused
  std::vector<Piece> forward, backward;

  // The pieces among which those of `pass` are: a repeated forward pass is part of the backward.
  const std::vector<Piece>& pieces_of(Pass pass) const {
    return pass == Pass::forward ? forward : backward;
  }
  Duration products(const std::vector<std::string_view>& names, Pass pass) const;
  Duration attention_core(Pass pass) const;

  // Products with tensor parallelism's collectives before the first and after the last: of a
  // parallel block both branches at once. Of an encoder's keys and values none is the last.
  struct Pair {
    std::vector<std::string_view> first, last;
    const ActivationCalls& calls;
  };
  std::vector<Pair> pairs() const;
  // Repeating a block up to its last product repeats the collectives between its products too.
  bool repeats_collectives() const;
  // Whether `pass` is a repeated one that need not come to the end of these products.
  bool ends_before(const std::vector<std::string_view>& products, Pass pass) const;
};

// Blocks of the same shape, without and with experts.
struct BlockKinds {
  BlockKernels dense;
  std::optional<BlockKernels> experts;
};

// Returns the blocks of one stack in a chunk; all of them if the plan has no stacks.
parallel::ChunkContent part_of(const parallel::ChunkContent& content, const PipelinePlan& plan,
                               std::size_t stack);

// Whether this part of a chunk is where the stack begins.
bool begins(const parallel::ChunkContent& part, const BlocksAlike& stack);

// Returns the kernels of each stack, or of all blocks if there are none. Refers to `plan`.
std::vector<BlockKinds> kinds_of(const PipelinePlan& plan, const GpuRates& rates);

}  // namespace lambcast
