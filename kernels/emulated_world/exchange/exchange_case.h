// For tests: random buffers of all ranks, and the invariant of error feedback.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "kernels/emulated_world/exchange/wire.h"

namespace lambcast::emulated {

using Flat = std::vector<float>;

inline std::vector<Flat> random_buffers(std::size_t ranks, std::size_t elements, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<Flat> all(ranks, Flat(elements));
  for (Flat& buffer : all) {
    for (float& x : buffer) x = static_cast<float>(bits() * 0x1p-32 - 0.4);
  }
  return all;
}

inline std::vector<std::span<float>> views(std::vector<Flat>& all) {
  return {all.begin(), all.end()};
}

// Returns the sum over the ranks of each element below `elements`.
inline std::vector<double> sum(const std::vector<Flat>& all, std::size_t elements) {
  std::vector<double> result(elements);
  for (const Flat& flat : all) {
    for (std::size_t e = 0; e < std::min(elements, flat.size()); ++e) result[e] += flat[e];
  }
  return result;
}

// Makes a few calls and checks the invariant after each. The callback returns the error feedback of
// all ranks for each element, in units of the sum.
template <typename State, typename Owed>
void sent_plus_owed_equals_meant(State state, std::size_t ranks, std::size_t elements, Owed owed) {
  for (unsigned call = 0; call < 4; ++call) {
    auto buffers = random_buffers(ranks, elements, 100 + call);
    auto meant = sum(buffers, elements);
    const auto owed_before = owed(state);
    average(state, views(buffers));
    const auto owed_after = owed(state);
    for (std::size_t r = 1; r < ranks; ++r) REQUIRE(buffers[r] == buffers[0]);
    for (std::size_t e = 0; e < elements; ++e) {
      const double n = static_cast<double>(ranks);
      REQUIRE(n * static_cast<double>(buffers[0][e]) + owed_after[e] ==
              Approx(meant[e] + owed_before[e]).margin(2e-6 * n));
    }
  }
}

}  // namespace lambcast::emulated
