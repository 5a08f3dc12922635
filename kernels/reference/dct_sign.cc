#include "kernels/reference/dct_sign.h"

#include <array>
#include <cmath>
#include <numbers>

#include "kernels/reference/chunk_top_k.h"

namespace lambcast::reference {
namespace {

constexpr std::size_t side = 64;

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

}  // namespace

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

ChunkMessage encode_cosines(std::span<const float> c, std::size_t kept) {
  const Kept sent = largest_of_chunks(transformed(c, false), kept);
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

std::vector<float> decode_cosines(const ChunkMessage& message, std::size_t elements,
                                  std::size_t kept) {
  std::vector<float> values(chunk_count(elements) * elements_of_chunk);
  BitReader reader(message, 1);
  each_kept(values.size(), kept, [&](std::size_t begin) {
    float& value = values[begin + reader.take(16)];
    value = reader.take(1) == 1 ? -reader.head(0) : reader.head(0);
  });
  values = transformed(values, true);
  values.resize(elements);
  return values;
}

}  // namespace lambcast::reference
