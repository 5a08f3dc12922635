#include "kernels/reference/chunked.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/reference/sparse.h"

namespace lambcast::reference {
namespace {

constexpr std::size_t side = 64;

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

struct Kept {
  std::vector<std::uint32_t> places;  // positions in their chunk
  std::vector<float> values;
};

Kept largest_of(std::span<const float> values, std::size_t kept) {
  Kept all;
  for (std::size_t begin = 0; begin < values.size(); begin += elements_of_chunk) {
    const auto chunk = values.subspan(begin, std::min(elements_of_chunk, values.size() - begin));
    for (const std::uint32_t place : top_k_indices(chunk, std::min(kept, chunk.size()))) {
      all.places.push_back(place);
      all.values.push_back(chunk[place]);
    }
  }
  return all;
}

template <typename Numbers>
ChunkMessage with_head(const Numbers& numbers) {
  ChunkMessage message(4 * numbers.size());
  std::memcpy(message.data(), numbers.data(), message.size());
  return message;
}

ChunkMessage encode_largest(std::span<const float> c, std::size_t kept) {
  const Kept sent = largest_of(c, kept);
  const double count = static_cast<double>(std::max<std::size_t>(1, sent.values.size()));
  double mean = 0, squares = 0;
  for (const float x : sent.values) mean += x / count;
  for (const float x : sent.values) squares += (x - mean) * (x - mean) / count;
  const double width = 1.5 * std::sqrt(squares);
  const auto bin_of = [&](float x) {
    return x < mean - width ? 0u : x < mean ? 1u : x < mean + width ? 2u : 3u;
  };
  std::array<double, 4> sums{}, members{};
  for (const float x : sent.values) {
    sums[bin_of(x)] += x;
    ++members[bin_of(x)];
  }
  std::array<float, 4> means{};
  for (std::size_t bin = 0; bin < 4; ++bin)
    means[bin] = static_cast<float>(sums[bin] / std::max(1.0, members[bin]));
  ChunkMessage message = with_head(means);
  BitWriter bits(message);
  for (std::size_t i = 0; i < sent.places.size(); ++i) {
    bits.put(sent.places[i], 12);
    bits.put(bin_of(sent.values[i]), 2);
  }
  return message;
}

// Returns the transform of all chunks, or its inverse if `back`. The last chunk is filled up with
// zeros.
std::vector<float> transformed(std::span<const float> x, bool back) {
  std::vector<float> all(chunk_count(x.size()) * elements_of_chunk);
  std::vector<double> block(elements_of_chunk);
  for (std::size_t begin = 0; begin < all.size(); begin += elements_of_chunk) {
    for (std::size_t e = 0; e < elements_of_chunk; ++e)
      block[e] = begin + e < x.size() ? static_cast<double>(x[begin + e]) : 0;
    cosine_transform(block, back);
    std::transform(block.begin(), block.end(), all.begin() + static_cast<std::ptrdiff_t>(begin),
                   [](double value) { return static_cast<float>(value); });
  }
  return all;
}

ChunkMessage encode_cosines(std::span<const float> c, std::size_t kept) {
  const Kept sent = largest_of(transformed(c, false), kept);
  double sum = 0;
  for (const float x : sent.values) sum += std::fabs(x);
  const auto count = static_cast<double>(std::max<std::size_t>(1, sent.values.size()));
  ChunkMessage message = with_head(std::array{static_cast<float>(sum / count)});
  BitWriter bits(message);
  for (std::size_t i = 0; i < sent.places.size(); ++i) {
    bits.put(sent.places[i], 16);
    bits.put(sent.values[i] < 0 ? 1 : 0, 1);
  }
  return message;
}

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

void cosine_transform(std::span<double> block, bool back) {
  static const std::vector<double> matrix = [] {
    std::vector<double> d(side * side);
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t j = 0; j < side; ++j)
        d[i * side + j] = std::sqrt((i == 0 ? 1.0 : 2.0) / side) *
                          std::cos(std::numbers::pi * (2 * j + 1) * i / (2 * side));
    return d;
  }();
  // Transforms rows, then columns: each turn replaces B by (D B)', and two turns give D B D'.
  std::vector<double> product(side * side);
  for (int turn = 0; turn < 2; ++turn) {
    std::fill(product.begin(), product.end(), 0);
    for (std::size_t i = 0; i < side; ++i)
      for (std::size_t k = 0; k < side; ++k)
        for (std::size_t j = 0; j < side; ++j)
          product[j * side + i] += matrix[back ? k * side + i : i * side + k] * block[k * side + j];
    std::copy(product.begin(), product.end(), block.begin());
  }
}

ChunkMessage encode(ChunkCode code, std::span<const float> c, std::size_t kept) {
  return code == ChunkCode::largest ? encode_largest(c, kept) : encode_cosines(c, kept);
}

std::vector<float> decode(ChunkCode code, const ChunkMessage& message, std::size_t elements,
                          std::size_t kept) {
  const bool largest = code == ChunkCode::largest;
  const std::size_t all = chunk_count(elements) * elements_of_chunk;
  std::vector<float> values(largest ? elements : all);
  BitReader reader(message, largest ? 4 : 1);
  for (std::size_t begin = 0; begin < values.size(); begin += elements_of_chunk) {
    const std::size_t sent = std::min({kept, elements_of_chunk, values.size() - begin});
    for (std::size_t i = 0; i < sent; ++i) {
      const std::size_t place = begin + reader.take(largest ? 12 : 16);
      const std::uint32_t value = reader.take(largest ? 2 : 1);
      values[place] = largest ? reader.head(value) : (value == 1 ? -1 : 1) * reader.head(0);
    }
  }
  if (largest) return values;
  values = transformed(values, true);
  values.resize(elements);
  return values;
}

}  // namespace lambcast::reference
