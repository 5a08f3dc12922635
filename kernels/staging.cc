#include "kernels/staging.h"

#include <algorithm>

namespace lambcast {

Staging staging_copies(const ChunkLayout& layout) {
  const std::uint64_t chunk = layout.chunk_bytes(), all = layout.packed_bytes();
  const std::uint64_t scale = sizeof(float);
  const std::uint64_t scales = static_cast<std::uint64_t>(layout.ranks) * scale;
  const auto down = [](std::uint64_t bytes, int times = 1) {
    return StagingCopy{true, bytes, times};
  };
  const auto up = [](std::uint64_t bytes, int times = 1) {
    return StagingCopy{false, bytes, times};
  };
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

std::uint64_t staging_bytes(const ChunkLayout& layout) {
  std::uint64_t most = 0;
  for (const StagingCopy& copy : staging_copies(layout).copies()) most = std::max(most, copy.bytes);
  return most;
}

}  // namespace lambcast
