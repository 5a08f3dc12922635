#include "kernels/reference/lossless.h"

#include <bit>

namespace lambcast::reference {
namespace {

constexpr std::size_t lossless_block = 512;

std::uint32_t exponent_of(std::uint16_t value) { return value >> 7 & 255u; }

}  // namespace

ChunkMessage encode_lossless(std::span<const std::uint16_t> values) {
  ChunkMessage message;
  BitWriter bits(message);
  for (std::size_t begin = 0; begin < values.size(); begin += lossless_block) {
    const auto block = values.subspan(begin, std::min(lossless_block, values.size() - begin));
    const auto [least, most] = std::ranges::minmax(block, {}, exponent_of);
    const int width = std::bit_width(exponent_of(most) - exponent_of(least));
    bits.put(exponent_of(most), 8);
    bits.put(static_cast<std::uint32_t>(width), 4);
    for (const std::uint16_t value : block) {
      bits.put((value >> 8 & 0x80u) | (value & 0x7fu), 8);
      bits.put(exponent_of(most) - exponent_of(value), width);
    }
  }
  return message;
}

std::vector<std::uint16_t> decode_lossless(const ChunkMessage& message, std::size_t elements) {
  std::vector<std::uint16_t> values(elements);
  BitReader reader(message, 0);
  std::uint32_t most = 0, width = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    if (e % lossless_block == 0) {
      most = reader.take(8);
      width = reader.take(4);
    }
    const std::uint32_t rest = reader.take(8);
    const std::uint32_t exponent = most - reader.take(static_cast<int>(width));
    values[e] = static_cast<std::uint16_t>((rest & 0x80u) << 8 | exponent << 7 | (rest & 0x7fu));
  }
  return values;
}

}  // namespace lambcast::reference
