#include "kernels/staging.h"

#include <algorithm>

namespace lambcast {

std::vector<StagingCopy> staging_copies(const ChunkLayout& layout) {
  const std::size_t n = static_cast<std::size_t>(layout.ranks);
  const std::size_t chunk = layout.chunk_bytes(), all = layout.packed_bytes();
  const std::size_t scale = sizeof(float), scales = n * sizeof(float);
  std::vector<StagingCopy> copies;
  const auto down = [&](std::size_t bytes) { copies.push_back({true, bytes}); };
  const auto up = [&](std::size_t bytes) { copies.push_back({false, bytes}); };

  for (std::size_t r = 0; r < n; ++r) down(chunk);
  down(scale);
  down(scales);
  up(all);
  for (std::size_t r = 0; r < n; ++r) up(chunk);
  up(scale);
  up(scales);

  for (const std::size_t bytes : {chunk, all, scale, scales}) down(bytes);
  for (const std::size_t bytes : {chunk, all, scale, scales}) up(bytes);
  return copies;
}

std::size_t staging_bytes(const ChunkLayout& layout) {
  std::size_t most = 0;
  for (const StagingCopy& copy : staging_copies(layout)) most = std::max(most, copy.bytes);
  return most;
}

}  // namespace lambcast
