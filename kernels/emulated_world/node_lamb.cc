#include "kernels/emulated_world/node_lamb.h"

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

// Adds the parts of tensors in [begin, end) of the buffer.
void add_stretches(NodeLamb& o, std::size_t rank, std::size_t begin, std::size_t end,
                   std::span<const float> initial) {
  for (std::size_t t = 0; t < o.tensors.tensors(); ++t) {
    const std::size_t first = o.tensors.offsets[t];
    const std::size_t from = std::max(begin, first), to = std::min(end, o.tensors.offsets[t + 1]);
    if (from >= to) continue;
    reference::Part part = reference::whole_part({1, o.tensors.size(t)});
    part.begin = from - first;
    part.end = to - first;
    const auto p = initial.subspan(from, to - from);
    o.ranks[rank].push_back({t, from, part, {p.begin(), p.end()}, o.rule.state(part)});
  }
}

// Returns the mean over all ranks of [begin, begin + count): summed in every node, then between
// nodes.
std::vector<float> mean_of(const NodeSharding& s, const std::vector<std::vector<float>>& gradients,
                           std::size_t begin, std::size_t count) {
  std::vector<float> mean(count);
  std::size_t rank = 0;
  for (int node = 0; node < s.nodes; ++node) {
    std::vector<float> sum(count);
    for (int i = 0; i < s.per_node; ++i, ++rank) {
      for (std::size_t e = 0; e < count; ++e) sum[e] += gradients[rank][begin + e];
    }
    for (std::size_t e = 0; e < count; ++e) mean[e] += sum[e];
  }
  const float share = static_cast<float>(1.0 / static_cast<double>(rank));
  for (float& x : mean) x *= share;
  return mean;
}

}  // namespace

NodeLamb node_lamb(const reference::ShardedLamb& rule, const NodeSharding& s,
                   const TensorLayout& tensors, std::span<const float> initial) {
  for (const auto& [number, name] : {std::pair(s.nodes, "nodes"),
                                     {s.per_node, "per_node"},
                                     {s.blocks, "blocks"},
                                     {s.chunks, "chunks"}}) {
    if (number < 1) fail_input(Where{"", 0, name}, "must be at least 1");
  }
  NodeLamb o{rule, s, tensors, {}};
  const std::size_t g = static_cast<std::size_t>(s.per_node);
  const std::size_t cuts = static_cast<std::size_t>(s.blocks) * static_cast<std::size_t>(s.chunks);
  const std::size_t shard = (tensors.elements() + cuts * g - 1) / (cuts * g);
  o.ranks.resize(static_cast<std::size_t>(s.nodes) * g);
  for (std::size_t rank = 0; rank < o.ranks.size(); ++rank) {
    for (std::size_t cut = 0; cut < cuts; ++cut) {
      const std::size_t begin = (cut * g + rank % g) * shard;
      add_stretches(o, rank, begin, begin + shard, initial);
    }
  }
  return o;
}

void step(NodeLamb& o, const std::vector<std::vector<float>>& gradients) {
  ++o.step;
  const std::size_t g = static_cast<std::size_t>(o.sharding.per_node);
  const std::size_t numbers = 2 * o.tensors.tensors();
  o.norm_collectives = o.summed_values = 0;
  for (std::size_t first = 0; first < o.ranks.size(); first += g) {  // node by node
    reference::Sums total(numbers);
    std::vector<std::vector<std::vector<float>>> means(g);  // [rank of the node][stretch]
    for (std::size_t i = 0; i < g; ++i) {
      for (auto& stretch : o.ranks[first + i]) {
        means[i].push_back(mean_of(o.sharding, gradients, stretch.begin, stretch.p.size()));
        const reference::View x{stretch.part, stretch.p, means[i].back()};
        const reference::Sums own = o.rule.sums(0, x, stretch.state, o.step);
        for (std::size_t k = 0; k < own.size(); ++k) total[2 * stretch.tensor + k] += own[k];
      }
    }
    for (std::size_t i = 0; i < g; ++i) {
      for (std::size_t k = 0; k < o.ranks[first + i].size(); ++k) {
        auto& stretch = o.ranks[first + i][k];
        const reference::View x{stretch.part, stretch.p, means[i][k]};
        const auto norms = total.begin() + static_cast<std::ptrdiff_t>(2 * stretch.tensor);
        o.rule.take(0, x, stretch.state, {norms, norms + 2}, o.step);
        o.rule.apply(x, stretch.state, o.step);
      }
    }
  }
  if (g == 1) return;
  o.norm_collectives = 1;
  o.summed_values = numbers;
}

std::vector<float> weights(const NodeLamb& o, int node) {
  std::vector<float> whole(o.tensors.elements());
  const std::size_t g = static_cast<std::size_t>(o.sharding.per_node);
  for (std::size_t i = 0; i < g; ++i) {
    for (const auto& stretch : o.ranks[static_cast<std::size_t>(node) * g + i]) {
      std::copy(stretch.p.begin(), stretch.p.end(),
                whole.begin() + static_cast<std::ptrdiff_t>(stretch.begin));
    }
  }
  return whole;
}

}  // namespace lambcast::emulated
