#include "kernels/emulated_world/exchange/plain_allreduce.h"

#include <algorithm>

#include "kernels/reference/quantisation.h"

namespace lambcast::emulated {

Wire plain_allreduce(Buffers buffers, WireFormat format) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  const std::size_t chunk = (elements + n - 1) / n;
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  const Quantiser plain{format, 0};
  std::vector<std::vector<float>> padded;
  for (const auto& buffer : buffers) {
    padded.emplace_back(buffer.begin(), buffer.end()).resize(chunk * n);
  }
  std::vector<float> average(chunk * n), received(chunk);
  for (std::size_t c = 0; c < n; ++c) {
    // Chunk c starts at rank c + 1, is complete at rank c, and then goes around once more.
    std::size_t rank = (c + 1) % n;
    std::vector<float> sum(chunk);
    std::copy_n(padded[rank].begin() + static_cast<std::ptrdiff_t>(c * chunk), chunk, sum.begin());
    for (std::size_t hop = 1; hop < n; ++hop) {
      const reference::Message message = reference::quantise(sum, plain);
      wire.sent[rank] += message.bytes();
      rank = (rank + 1) % n;
      reference::dequantise(message, plain, received);
      for (std::size_t e = 0; e < chunk; ++e) sum[e] = received[e] + padded[rank][c * chunk + e];
    }
    for (float& x : sum) x *= static_cast<float>(1.0 / static_cast<double>(n));
    const reference::Message message = reference::quantise(sum, plain);
    for (std::size_t hop = 1; hop < n; ++hop) wire.sent[(c + hop - 1) % n] += message.bytes();
    reference::dequantise(message, plain, std::span(average).subspan(c * chunk, chunk));
  }
  hand_out(average, buffers);
  return wire;
}

}  // namespace lambcast::emulated
