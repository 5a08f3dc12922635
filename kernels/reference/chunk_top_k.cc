#include "kernels/reference/chunk_top_k.h"

#include <array>
#include <cmath>

#include "kernels/reference/sparse.h"

namespace lambcast::reference {

Kept largest_of_chunks(std::span<const float> values, std::size_t kept) {
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

ChunkMessage encode_largest(std::span<const float> c, std::size_t kept) {
  const Kept sent = largest_of_chunks(c, kept);
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

std::vector<float> decode_largest(const ChunkMessage& message, std::size_t elements,
                                  std::size_t kept) {
  std::vector<float> values(elements);
  BitReader reader(message, 4);
  each_kept(elements, kept, [&](std::size_t begin) {
    float& value = values[begin + reader.take(12)];
    value = reader.head(reader.take(2));
  });
  return values;
}

}  // namespace lambcast::reference
