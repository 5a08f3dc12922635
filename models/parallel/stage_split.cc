#include "models/parallel/stage_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

std::vector<double> sums_of(std::span<const double> weights) {
  std::vector<double> sums = {0};
  for (const double weight : weights) sums.push_back(sums.back() + weight);
  return sums;
}

// Returns parts that are each filled with ceil(items / parts) items until none are left.
std::vector<int> partition_fill(int items, int parts) {
  const int each = (items + parts - 1) / parts;
  std::vector<int> firsts;
  for (int part = 0; part <= parts; ++part) firsts.push_back(std::min(items, part * each));
  return firsts;
}

// Returns the chunks between boundaries given as layers. Embedding and head are added to the first
// and the last chunk.
std::vector<ChunkContent> chunks_of_layers(const std::vector<int>& firsts) {
  std::vector<ChunkContent> chunks;
  for (std::size_t i = 0; i + 1 < firsts.size(); ++i)
    chunks.push_back({firsts[i], firsts[i + 1] - firsts[i], false, false});
  chunks.front().embedding = true;
  chunks.back().head = true;
  return chunks;
}

// Returns the chunks between boundaries given as items: the embedding, each layer, the head.
std::vector<ChunkContent> chunks_of_items(const std::vector<int>& firsts) {
  const int layers = firsts.back() - 2;
  std::vector<ChunkContent> chunks;
  for (std::size_t i = 0; i + 1 < firsts.size(); ++i) {
    const int first = std::clamp(firsts[i] - 1, 0, layers);
    const int end = std::clamp(firsts[i + 1] - 1, 0, layers);
    chunks.push_back({first, end - first, firsts[i] == 0 && firsts[i + 1] > 0,
                      firsts[i] < layers + 2 && firsts[i + 1] == layers + 2});
  }
  return chunks;
}

}  // namespace

const std::vector<std::string>& split_method_names() {
  static const std::vector<std::string> names{"even", "count_ends", "spread", "fill"};
  return names;
}

std::string_view name_of(SplitMethod method) {
  return split_method_names()[static_cast<std::size_t>(method)];
}

std::string refusal(SplitMethod method, int layers, int positions) {
  const int items = method == SplitMethod::count_ends ? layers + 2 : layers;
  if (items < positions)
    return fmt::format("{} layers are fewer than {} stages and chunks", layers, positions);
  if (method == SplitMethod::even && layers % positions != 0)
    return fmt::format("{} layers are not divisible by {} stages and chunks", layers, positions);
  if (method == SplitMethod::count_ends && items % positions != 0)
    return fmt::format(
        "{} layers and 2 for embedding and head are not divisible by {} stages and "
        "chunks",
        layers, positions);
  return "";
}

std::vector<ChunkContent> split_stages(SplitMethod method, int layers, int positions) {
  const std::string why_not = refusal(method, layers, positions);
  LAMBCAST_CHECK(why_not.empty(), "{}", why_not);
  if (method == SplitMethod::count_ends)
    return chunks_of_items(partition_uniform(layers + 2, positions));
  if (method == SplitMethod::fill) return chunks_of_layers(partition_fill(layers, positions));
  return chunks_of_layers(partition_uniform(layers, positions));
}

std::vector<ChunkContent> split_by_weight(std::span<const double> weights, int positions) {
  LAMBCAST_CHECK(weights.size() >= 2, "{} weights", weights.size());
  return chunks_of_items(partition_least_spread(weights, positions));
}

std::vector<int> partition_uniform(int items, int parts) {
  std::vector<int> firsts = {0};
  for (int part = 0; part < parts; ++part)
    firsts.push_back(firsts.back() + items / parts + (part < items % parts ? 1 : 0));
  return firsts;
}

std::vector<int> partition_least_spread(std::span<const double> weights, int parts) {
  const std::size_t items = weights.size();
  const auto heaps = static_cast<std::size_t>(parts);
  if (items <= heaps) return partition_uniform(static_cast<int>(items), parts);
  const std::vector<double> sums = sums_of(weights);
  // best[j][i]: split of the first i items into j parts with the least spread. As in DeepSpeed,
  // only the best split of each prefix is extended, which does not always give the best total.
  struct Best {
    double most = std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity();
    std::size_t last_first = 0;
    double spread() const { return most - least; }
  };
  std::vector<std::vector<Best>> best(heaps + 1, std::vector<Best>(items + 1));
  for (std::size_t i = 1; i <= items; ++i) best[1][i] = {sums[i], sums[i], 0};
  for (std::size_t j = 2; j <= heaps; ++j)
    for (std::size_t i = j; i <= items; ++i)
      for (std::size_t k = j - 1; k < i; ++k) {
        const double last = sums[i] - sums[k];
        const Best next{std::max(best[j - 1][k].most, last), std::min(best[j - 1][k].least, last),
                        k};
        if (k == j - 1 || next.spread() <= best[j][i].spread()) best[j][i] = next;
      }
  std::vector<int> firsts(heaps + 1, static_cast<int>(items));
  std::size_t end = items;
  for (std::size_t j = heaps; j >= 1; --j) {
    end = best[j][end].last_first;
    firsts[j - 1] = static_cast<int>(end);
  }
  return firsts;
}

}  // namespace lambcast::parallel
