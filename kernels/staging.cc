#include "kernels/staging.h"

#include <algorithm>

namespace lambcast {

Staging staging_copies(const ChunkLayout& layout) {
  const std::size_t chunk = layout.chunk_bytes(), all = layout.packed_bytes();
  const std::size_t scale = sizeof(float);
  const std::size_t scales = static_cast<std::size_t>(layout.ranks) * scale;
  const auto down = [](std::size_t bytes, int times = 1) {
    return StagingCopy{true, bytes, times};
  };
  const auto up = [](std::size_t bytes, int times = 1) { return StagingCopy{false, bytes, times}; };
  return {{down(chunk, layout.ranks), down(scale), down(scales),  //
           up(all), up(chunk, layout.ranks), up(scale), up(scales)},
          {down(chunk), down(all), down(scale), down(scales),  //
           up(chunk), up(all), up(scale), up(scales)}};
}

std::vector<StagingCopy> Staging::copies() const {
  std::vector<StagingCopy> both = scatter;
  both.insert(both.end(), gather.begin(), gather.end());
  return both;
}

std::size_t staging_bytes(const ChunkLayout& layout) {
  std::size_t most = 0;
  for (const StagingCopy& copy : staging_copies(layout).copies()) most = std::max(most, copy.bytes);
  return most;
}

}  // namespace lambcast
