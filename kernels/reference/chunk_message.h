// Messages of codecs whose values have widths in bits, behind a header of floats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "kernels/exchange_bytes.h"

namespace lambcast::reference {

using ChunkMessage = std::vector<std::uint8_t>;

template <typename Numbers>
ChunkMessage with_head(const Numbers& numbers) {
  ChunkMessage message(4 * numbers.size());
  std::memcpy(message.data(), numbers.data(), message.size());
  return message;
}

// Writes the lowest bits of each value, one value after another.
class BitWriter {
 public:
  explicit BitWriter(ChunkMessage& bytes) : bytes_(bytes) {}
  void put(std::uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i, ++at_) {
      if (at_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<std::uint8_t>((value >> i & 1u) << at_ % 8);
    }
  }

 private:
  ChunkMessage& bytes_;
  std::size_t at_ = 0;
};

// Reads the bits that BitWriter wrote, after a header of `floats` floats.
class BitReader {
 public:
  BitReader(const ChunkMessage& bytes, std::size_t floats)
      : bytes_(bytes), head_(floats), at_(32 * floats) {
    std::memcpy(head_.data(), bytes.data(), 4 * floats);
  }
  float head(std::size_t i) const { return head_[i]; }
  std::uint32_t take(int bits) {
    std::uint32_t value = 0;
    for (int i = 0; i < bits; ++i, ++at_) value |= (bytes_[at_ / 8] >> at_ % 8 & 1u) << i;
    return value;
  }

 private:
  const ChunkMessage& bytes_;
  std::vector<float> head_;
  std::size_t at_;
};

// Calls read(begin) for each value of a message, with the first element of the value's chunk.
template <typename Read>
void each_kept(std::size_t elements, std::size_t kept, const Read& read) {
  for (std::size_t begin = 0; begin < elements; begin += elements_of_chunk) {
    const std::size_t sent = std::min({kept, elements_of_chunk, elements - begin});
    for (std::size_t i = 0; i < sent; ++i) read(begin);
  }
}

}  // namespace lambcast::reference
