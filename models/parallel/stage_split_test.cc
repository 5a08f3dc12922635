#include "models/parallel/stage_split.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>
#include <tuple>

namespace lambcast::parallel {
namespace {

std::vector<int> layers_of(const std::vector<ChunkContent>& chunks) {
  std::vector<int> layers;
  for (const ChunkContent& chunk : chunks) layers.push_back(chunk.layers);
  return layers;
}

// Returns the difference between the heaviest and the lightest part.
double spread(const std::vector<double>& weights, const std::vector<int>& firsts) {
  std::vector<double> heaps;
  for (std::size_t part = 0; part + 1 < firsts.size(); ++part)
    heaps.push_back(
        std::accumulate(weights.begin() + firsts[part], weights.begin() + firsts[part + 1], 0.0));
  const auto [least, most] = std::minmax_element(heaps.begin(), heaps.end());
  return *most - *least;
}

constexpr SplitMethod methods[] = {SplitMethod::even, SplitMethod::count_ends, SplitMethod::spread,
                                   SplitMethod::fill};

}  // namespace

TEST_CASE("split: layers as distributed by the programs") {
  CHECK(layers_of(split_stages(SplitMethod::even, 96, 16)) == std::vector<int>(16, 6));
  // BigScience splits 78 layers over 12 stages.
  std::vector<int> fill(12, 7);
  fill.back() = 1;
  CHECK(layers_of(split_stages(SplitMethod::fill, 78, 12)) == fill);
  CHECK(layers_of(split_stages(SplitMethod::spread, 78, 12)) ==
        std::vector<int>{7, 7, 7, 7, 7, 7, 6, 6, 6, 6, 6, 6});
  // Llama 3.1 405B on 8 stages of 8 chunks has 2 layers per chunk, one less at both ends.
  const auto llama = split_stages(SplitMethod::count_ends, 126, 64);
  std::vector<int> counted(64, 2);
  counted.front() = counted.back() = 1;
  CHECK(layers_of(llama) == counted);
  // DeepSeek-V3 and Kimi K2 have 61 layers on 16, 8 or 4 stages (Megatron-Bridge
  // recipes/kimi/kimi_k2.py, map_pp_vp_to_layout).
  for (const auto& [stages, each, last] : {std::tuple(16, 4, 1), {8, 8, 5}, {4, 16, 13}}) {
    std::vector<int> published(static_cast<std::size_t>(stages), each);
    published.back() = last;
    CHECK(layers_of(split_stages(SplitMethod::fill, 61, stages)) == published);
  }
  // Qwen3-235B has 94 layers on 8 stages of 4 chunks; embedding and loss are counted as layers.
  std::vector<int> qwen(32, 3);
  qwen.front() = qwen.back() = 2;
  CHECK(layers_of(split_stages(SplitMethod::count_ends, 94, 32)) == qwen);
  // Qi et al. 2024 split 22 layers: one per chunk, but the first chunk has only the embedding.
  const auto one_each = split_stages(SplitMethod::count_ends, 22, 24);
  CHECK(one_each.front() == ChunkContent{0, 0, true, false});
  CHECK(one_each[1] == ChunkContent{0, 1, false, false});
  CHECK(one_each.back() == ChunkContent{22, 0, false, true});
}

TEST_CASE("split: every layer once and in order, embedding first and head last") {
  for (const SplitMethod method : methods)
    for (int layers = 1; layers < 40; ++layers)
      for (int positions = 1; positions < 12; ++positions) {
        if (!refusal(method, layers, positions).empty()) continue;
        CAPTURE(name_of(method), layers, positions);
        const auto chunks = split_stages(method, layers, positions);
        REQUIRE(static_cast<int>(chunks.size()) == positions);
        int next = 0;
        for (const ChunkContent& chunk : chunks) {
          CHECK(chunk.first_layer == next);
          next += chunk.layers;
        }
        CHECK(next == layers);
        for (int i = 0; i < positions; ++i) {
          CHECK(chunks[static_cast<std::size_t>(i)].embedding == (i == 0));
          CHECK(chunks[static_cast<std::size_t>(i)].head == (i == positions - 1));
        }
      }
}

TEST_CASE("split: numbers that do not divide are refused in a sentence that states them") {
  CHECK(refusal(SplitMethod::even, 78, 12) ==
        "78 layers are not divisible by 12 stages and chunks");
  CHECK(refusal(SplitMethod::count_ends, 78, 12) ==
        "78 layers and 2 for embedding and head are not divisible by 12 stages and chunks");
  CHECK(refusal(SplitMethod::fill, 3, 4) == "3 layers are fewer than 4 stages and chunks");
  CHECK(refusal(SplitMethod::count_ends, 70, 12).empty());
}

TEST_CASE("split: by weight, a heavy embedding reduces the layers of its stage") {
  // Embedding and head weigh as much as two layers each; there are 12 layers on 4 stages.
  std::vector<double> weights(14, 1.0);
  weights.front() = weights.back() = 2;
  CHECK(layers_of(split_by_weight(weights, 4)) == std::vector<int>{2, 4, 4, 2});
  // With equal weights the result equals that of partition_uniform().
  const std::vector<double> alike(80, 1.0);
  CHECK(partition_least_spread(alike, 12) == partition_uniform(80, 12));
}

TEST_CASE("split: two parts by weight are as equal as possible") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> weights(5 + random() % 9);
    for (double& weight : weights) weight = static_cast<double>(1 + random() % 20);
    const auto items = static_cast<int>(weights.size());
    double best = spread(weights, {0, 1, items});
    for (int first = 2; first < items; ++first)
      best = std::min(best, spread(weights, {0, first, items}));
    CHECK(spread(weights, partition_least_spread(weights, 2)) == best);
    const auto firsts = partition_least_spread(weights, 4);
    REQUIRE(firsts.size() == 5);
    CHECK(std::is_sorted(firsts.begin(), firsts.end()));
    CHECK(firsts.front() == 0);
    CHECK(firsts.back() == items);
  }
  CHECK(partition_least_spread(std::vector<double>(3, 1.0), 5) ==
        std::vector<int>{0, 1, 2, 3, 3, 3});
}

}  // namespace lambcast::parallel
