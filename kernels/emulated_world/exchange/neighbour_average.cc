#include "kernels/emulated_world/exchange/neighbour_average.h"

#include <algorithm>
#include <bit>

#include "kernels/reference/local_steps.h"
#include "kernels/reference/quantisation.h"
#include "sim/base/error.h"

namespace lambcast::emulated {

int neighbours(Graph graph, int ranks) {
  if (ranks == 1) return 0;
  return graph == Graph::ring && ranks > 2 ? 2 : 1;
}

Wire average_with_neighbours(Graph graph, std::size_t call, Buffers buffers, WireFormat format) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  if (graph == Graph::one_peer_exponential && !std::has_single_bit(n)) {
    fail_input(Where{"", 0, "ranks"}, "must be a power of two for the exponential graph");
  }
  std::vector<std::size_t> hops;
  if (graph == Graph::ring)
    hops = n > 2 ? std::vector<std::size_t>{1, n - 1} : std::vector<std::size_t>{1};
  else
    hops = {std::size_t{1} << call % static_cast<std::size_t>(std::countr_zero(n))};
  const std::vector<float> weights(hops.size() + 1, 1.0f / static_cast<float>(hops.size() + 1));
  const Quantiser plain{format, 0};
  std::vector<reference::Message> messages;
  std::vector<std::vector<float>> received(n, std::vector<float>(elements)),
      averages(n, std::vector<float>(elements));
  for (std::size_t r = 0; r < n; ++r) {
    messages.push_back(reference::quantise(buffers[r], plain));
    wire.sent[r] = hops.size() * messages.back().bytes();
    reference::dequantise(messages.back(), plain, received[r]);
  }
  for (std::size_t r = 0; r < n; ++r) {
    // A rank's own share is rounded in the same way, so that the mean of all ranks does not change.
    std::vector<std::span<const float>> sources{received[r]};
    for (const std::size_t hop : hops) sources.emplace_back(received[(r + hop) % n]);
    reference::weighted_sum(sources, weights, averages[r]);
  }
  for (std::size_t r = 0; r < n; ++r) {
    std::copy(averages[r].begin(), averages[r].end(), buffers[r].begin());
  }
  return wire;
}

}  // namespace lambcast::emulated
