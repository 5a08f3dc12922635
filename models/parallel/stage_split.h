// Layers of each chunk of a pipeline, and the chunks with the embedding and the head.
//
//   even        layers / positions each; embedding with the first, head with the last (Megatron-LM)
//   count_ends  embedding and head each count as a layer: 126 layers of Llama 3.1 405B on 8
//               stages x 8 chunks are (126 + 2) / 64 = 2 each, 1 at both ends (Megatron-LM
//               account_for_{embedding,loss}_in_pipeline_split; Qi et al. 2024, table 3)
//   spread      counts differ by one at most, the larger first (DeepSpeed partition_uniform)
//   fill        ceil(layers / positions) each until none are left: 78 on 12 are 11 x 7 + 1
//               (DeepSpeed until 2023, partition_method type:transformer; BigScience's runs)
// and by weight, for instance parameters (DeepSpeed runtime/utils.py, partition_balanced).
//
// Positions are chunks in the order of a forward pass (Pipeline::position).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::parallel {

struct ChunkContent {
  int first_layer = 0;
  int layers = 0;
  bool embedding = false;
  bool head = false;
  friend bool operator==(const ChunkContent&, const ChunkContent&) = default;
};

enum class SplitMethod { even, count_ends, spread, fill };

const std::vector<std::string>& split_method_names();
std::string_view name_of(SplitMethod method);

// Returns why layers cannot be split this way, as a sentence without its place; empty if they can.
std::string refusal(SplitMethod method, int layers, int positions);

// Returns the chunks by position. refusal() of the split must be empty.
std::vector<ChunkContent> split_stages(SplitMethod method, int layers, int positions);

// Splits by `weights` of the embedding, of each layer and of the head, in this order, into parts of
// neighbours whose total weights are as equal as possible.
std::vector<ChunkContent> split_by_weight(std::span<const double> weights, int positions);

// Split items into `parts` parts of neighbours. They return the index of the first item of each
// part, and the number of items. With fewer items than parts, the last parts are empty.
//   uniform       counts differ by one at most, the larger first
//   least_spread  smallest difference between the heaviest and the lightest part; of equal splits
//                 the one with the smaller later parts. Takes items^2 x parts operations
std::vector<int> partition_uniform(int items, int parts);
std::vector<int> partition_least_spread(std::span<const double> weights, int parts);

}  // namespace lambcast::parallel
