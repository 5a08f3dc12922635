#include "kernels/emulated_world/compressed_allreduce.h"

#include <algorithm>

#include "kernels/reference/compression.h"
#include "sim/base/check.h"

namespace lambcast::emulated {

ErrorFeedback error_feedback(const ChunkLayout& layout) {
  const std::size_t n = static_cast<std::size_t>(layout.ranks);
  return {layout, std::vector(n, std::vector<float>(layout.padded)),
          std::vector(n, std::vector<float>(layout.chunk))};
}

Scales compressed_allreduce(std::span<const std::span<float>> buffers, ErrorFeedback& errors,
                            Padding padding) {
  const ChunkLayout& layout = errors.layout;
  const std::size_t n = static_cast<std::size_t>(layout.ranks);
  const std::size_t chunk_bytes = layout.chunk_bytes();
  LAMBCAST_CHECK(buffers.size() == n, "{} buffers for {} ranks", buffers.size(), n);

  Scales scales;
  std::vector<std::vector<std::uint8_t>> sent(n, std::vector<std::uint8_t>(layout.packed_bytes()));
  for (std::size_t i = 0; i < n; ++i) {
    scales.worker.push_back(
        reference::worker_phase(buffers[i], errors.worker[i], sent[i], padding));
  }

  // All-to-all: rank r receives chunk r of every rank. All-gather: all ranks receive all chunks.
  std::vector<std::uint8_t> gathered(layout.packed_bytes());
  for (std::size_t r = 0; r < n; ++r) {
    std::vector<std::uint8_t> received;
    for (const auto& signs : sent) {
      const auto chunk = std::span(signs).subspan(r * chunk_bytes, chunk_bytes);
      received.insert(received.end(), chunk.begin(), chunk.end());
    }
    scales.server.push_back(
        reference::server_phase(received, scales.worker, errors.server[r],
                                std::span(gathered).subspan(r * chunk_bytes, chunk_bytes),
                                layout.real_in_chunk(static_cast<int>(r)), padding));
  }
  for (const std::span<float> buffer : buffers) {
    reference::decode(gathered, scales.server, layout.chunk, buffer);
  }
  return scales;
}

}  // namespace lambcast::emulated
