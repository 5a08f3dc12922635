#include "kernels/layout.h"

#include <algorithm>
#include <numeric>

#include "sim/base/error.h"

namespace lambcast {

std::uint64_t ChunkLayout::real_in_chunk(int rank) const {
  const std::uint64_t begin = static_cast<std::uint64_t>(rank) * chunk;
  return elements <= begin ? 0 : std::min(chunk, elements - begin);
}

ChunkLayout chunk_layout(std::uint64_t elements, int ranks) {
  if (ranks < 1) fail_input(Where{"", 0, "ranks"}, "must be at least 1");
  const std::uint64_t n = static_cast<std::uint64_t>(ranks);
  const std::uint64_t align = n * std::lcm(n, std::uint64_t{8});
  const std::uint64_t padded = (elements + align - 1) / align * align;
  return {elements, padded, padded / n, ranks};
}

ChunkLayout share_layout(std::uint64_t elements, int nodes, int shares, int share) {
  if (shares < 1) fail_input(Where{"", 0, "shares"}, "must be at least 1");
  const std::uint64_t n = static_cast<std::uint64_t>(shares);
  ChunkLayout layout = chunk_layout((elements + n - 1) / n, nodes);
  const std::uint64_t begin = static_cast<std::uint64_t>(share) * layout.padded;
  layout.elements = elements <= begin ? 0 : std::min(layout.padded, elements - begin);
  return layout;
}

TensorLayout tensor_layout(std::span<const std::size_t> sizes) {
  TensorLayout layout;
  for (const std::size_t size : sizes) layout.offsets.push_back(layout.offsets.back() + size);
  return layout;
}

}  // namespace lambcast
