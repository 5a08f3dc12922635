#include "kernels/emulated_world/exchange/two_level.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

using Flat = std::vector<float>;

Flat rounded(Flat values, const Quantiser& plain) {
  const reference::Message message = reference::quantise(values, plain);
  reference::dequantise(message, plain, values);
  return values;
}

// Returns the mean of a node's buffers.
Flat node_mean(Buffers of_node, WireFormat format) {
  const Quantiser plain{format, 0};
  Flat sum(of_node[0].size());
  for (const std::span<float> buffer : of_node) {
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += buffer[e];
    sum = rounded(std::move(sum), plain);
  }
  for (float& x : sum) x *= static_cast<float>(1.0 / static_cast<double>(of_node.size()));
  return rounded(std::move(sum), plain);
}

// Averages one share over the nodes; returns the bytes that each node sent.
std::size_t exchange(TwoLevel& o, std::size_t share, const ChunkLayout& layout, Buffers of_nodes) {
  if (layout.ranks == 1) return 0;
  if (!o.quantiser) {
    while (o.signs.size() <= share) o.signs.push_back(error_feedback(layout));
    compressed_allreduce(of_nodes, o.signs[share], Padding::excluded);
    return onebit_allreduce_bytes(layout.padded, layout.ranks);
  }
  if (layout.elements == 0) return 0;
  if (o.quantised.size() <= share) o.quantised.resize(share + 1, {*o.quantiser, o.error_feedback});
  return average(o.quantised[share], of_nodes).sent[0];
}

// Returns the bytes that the rank at `place` in its node sends within the node. With Nodes::leaders
// the ranks form a chain: sums travel to the leader (place 0) and results travel back.
std::size_t sent_in_node(const TwoLevel& o, std::size_t place, const ChunkLayout& share) {
  const std::size_t others = static_cast<std::size_t>(o.per_node) - 1;
  if (o.nodes == Nodes::leaders) {
    const std::size_t whole = payload_bytes(o.in_node, share.elements);
    return (place > 0 ? whole : 0) + (place < others ? whole : 0);
  }
  return others * (payload_bytes(o.in_node, share.padded) + code_bytes(share, o.quantiser));
}

}  // namespace

Wire average(TwoLevel& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), g = static_cast<std::size_t>(o.per_node);
  if (o.per_node < 1 || n % g != 0)
    fail_input(Where{"", 0, "per_node"}, fmt::format("must divide the {} ranks", n));
  const std::size_t m = n / g, elements = buffers[0].size();
  const int shares = o.nodes == Nodes::leaders ? 1 : o.per_node;
  std::vector<Flat> means;
  for (std::size_t node = 0; node < m; ++node)
    means.push_back(node_mean(buffers.subspan(node * g, g), o.in_node));
  Wire wire{std::vector<std::size_t>(n)};
  for (int s = 0; s < shares; ++s) {
    const ChunkLayout layout = share_layout(elements, static_cast<int>(m), shares, s);
    const std::size_t begin = static_cast<std::size_t>(s) * layout.padded;
    std::vector<std::span<float>> of_nodes;
    for (Flat& mean : means)
      of_nodes.push_back(std::span(mean).subspan(std::min(begin, elements), layout.elements));
    const std::size_t sent = exchange(o, static_cast<std::size_t>(s), layout, of_nodes);
    for (std::size_t node = 0; node < m; ++node)
      wire.sent[node * g + static_cast<std::size_t>(s)] += sent;
  }
  for (std::size_t r = 0; r < n; ++r) {
    wire.sent[r] += sent_in_node(o, r % g, share_layout(elements, static_cast<int>(m), shares, 0));
    std::ranges::copy(means[r / g], buffers[r].begin());
  }
  return wire;
}

}  // namespace lambcast::emulated
