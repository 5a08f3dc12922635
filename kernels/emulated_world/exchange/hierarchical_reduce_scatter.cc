#include "kernels/emulated_world/exchange/hierarchical_reduce_scatter.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

using reference::Message;
using Flat = std::vector<float>;

}  // namespace

Wire average(HierarchicalReduceScatter& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), g = static_cast<std::size_t>(o.per_node), m = n / g;
  if (o.per_node < 1 || n % g != 0) {
    fail_input(Where{"", 0, "per_node"}, fmt::format("must divide the {} ranks", n));
  }
  const std::size_t elements = buffers[0].size(), shard = (elements + n - 1) / n;
  Wire wire{std::vector<std::size_t>(n)};
  std::vector<Flat> c = compensated(buffers, o.worker, shard * n);
  o.between.resize(n, Flat(m * shard));
  // Within the node: local rank j gets the shards of rank j of every node, one message from each
  // rank.
  std::vector<Flat> sums;  // [rank][node * shard]
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t node = r / g, j = r % g;
    Flat sum(m * shard), received(m * shard);
    for (std::size_t i = node * g; i < (node + 1) * g; ++i) {
      Flat part, rest(m * shard);
      for (std::size_t k = 0; k < m; ++k) {
        const auto from = c[i].begin() + static_cast<std::ptrdiff_t>((k * g + j) * shard);
        part.insert(part.end(), from, from + static_cast<std::ptrdiff_t>(shard));
      }
      if (i == r) {  // its own part is not sent
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += part[e];
      } else {
        const Message message = send(part, rest, o.in_node, o.error_feedback);
        wire.sent[i] += message.bytes();
        reference::dequantise(message, o.in_node, received);
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += received[e];
      }
      for (std::size_t e = 0; e < rest.size(); ++e) {
        o.worker[i][((e / shard) * g + j) * shard + e % shard] = rest[e];
      }
    }
    sums.push_back(std::move(sum));
  }
  // Between nodes: peer j of node k gets shard k g + j.
  const float share = static_cast<float>(1.0 / static_cast<double>(n));
  std::vector<Flat> averages(n, Flat(shard));
  Flat received(shard);
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t k = 0; k < m; ++k) {
      const auto part = std::span(sums[r]).subspan(k * shard, shard);
      Flat& average = averages[k * g + r % g];
      if (k == r / g) {
        for (std::size_t e = 0; e < shard; ++e) average[e] += part[e];
        continue;
      }
      const auto owed = std::span(o.between[r]).subspan(k * shard, shard);
      for (std::size_t e = 0; e < shard; ++e) part[e] += owed[e];
      const Message message = send(part, owed, o.between_nodes, o.error_feedback);
      wire.sent[r] += message.bytes();
      reference::dequantise(message, o.between_nodes, received);
      for (std::size_t e = 0; e < shard; ++e) average[e] += received[e];
    }
  }
  for (std::size_t r = 0; r < n; ++r) {
    const std::size_t real = r * shard >= elements ? 0 : std::min(shard, elements - r * shard);
    for (std::size_t e = 0; e < real; ++e) buffers[r][e] = averages[r][e] * share;
  }
  return wire;
}

}  // namespace lambcast::emulated
