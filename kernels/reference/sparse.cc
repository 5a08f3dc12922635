#include "kernels/reference/sparse.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

// Magnitudes have the order of their bits; a NaN has the largest exponent and is above all numbers.
std::uint32_t magnitude_key(float x) { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffu; }

// splitmix64: a permutation of 64-bit numbers without a visible pattern.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<std::uint32_t> top_k_indices(std::span<const float> c, std::size_t k) {
  LAMBCAST_CHECK(k <= c.size(), "{} of {} elements", k, c.size());
  std::vector<std::uint32_t> order(c.size());
  std::iota(order.begin(), order.end(), 0u);
  const auto first = order.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(order.begin(), first, order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t x = magnitude_key(c[a]), y = magnitude_key(c[b]);
    return x != y ? x > y : a < b;
  });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

std::uint32_t random_index(std::uint64_t seed, std::size_t bucket, std::size_t k,
                           std::size_t elements) {
  const std::size_t begin = bucket * elements / k, end = (bucket + 1) * elements / k;
  return static_cast<std::uint32_t>(begin + mixed(mixed(seed) ^ bucket) % (end - begin));
}

std::vector<std::uint32_t> random_k_indices(std::uint64_t seed, std::size_t k,
                                            std::size_t elements) {
  LAMBCAST_CHECK(k <= elements, "{} of {} elements", k, elements);
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < k; ++i) indices.push_back(random_index(seed, i, k, elements));
  return indices;
}

std::vector<float> take(std::span<float> c, std::span<const std::uint32_t> indices) {
  std::vector<float> values;
  for (const std::uint32_t e : indices) {
    values.push_back(c[e]);
    c[e] = 0;
  }
  return values;
}

void add_at(std::span<float> x, std::span<const std::uint32_t> indices,
            std::span<const float> values, float share) {
  LAMBCAST_CHECK(indices.size() == values.size(), "{} indices, {} values", indices.size(),
                 values.size());
  for (std::size_t i = 0; i < indices.size(); ++i) x[indices[i]] += share * values[i];
}

}  // namespace lambcast::reference
