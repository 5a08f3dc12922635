// Layers of each chunk of a pipeline, and the chunks with the embedding and the head.
//
//   even        layers / positions each; embedding with the first, head with the last (Megatron-LM)
//   count_ends  embedding and head each take the place of a layer: 126 layers of Llama 3.1 405B on
//               8 stages x 8 chunks are (126 + 2) / 64 = 2 each, 1 at both ends (Megatron-LM
//               account_for_{embedding,loss}_in_pipeline_split; Qi et al. 2024, table 3)
//   spread      counts differ by one at most, the larger first (DeepSpeed partition_uniform)
//   fill        ceil(layers / positions) each until they are used up: 78 on 12 are 11 x 7 + 1
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

// Why layers cannot be split so, as a sentence without its place; empty if they can.
std::string refusal(SplitMethod method, int layers, int positions);

// By position. The split must not be refused.
std::vector<ChunkContent> split_stages(SplitMethod method, int layers, int positions);

// `weights` of the embedding, of each layer and of the head, in this order: heaps of neighbours
// whose heaviest and lightest weigh as alike as possible.
std::vector<ChunkContent> split_by_weight(std::span<const double> weights, int positions);

// Neighbouring items in `parts` heaps: the first item of each, and the end. Fewer items than parts
// leave the last heaps empty.
//   uniform       counts differ by one at most, the larger first
//   least_spread  heaviest less lightest heap as small as can be; of equally good ones those whose
//                 later heaps are smaller. Takes items^2 x parts operations
std::vector<int> partition_uniform(int items, int parts);
std::vector<int> partition_least_spread(std::span<const double> weights, int parts);

}  // namespace lambcast::parallel
