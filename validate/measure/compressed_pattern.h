// Inputs of compressed_allreduce with an exactly known result, so that signs, scales, chunks and
// padding can be checked for equality. From zero errors, with n ranks and chunks of C elements:
//
//   input of rank r    x_r[i] = s(i) w(r, c) a(r)      c = i / C, the rank that serves i
//   average            s(i) M(c),  M(c) = sum over r of w(r, c) a(r) / n
//
// s(i) = +-1 by a hash of i shows elements at the wrong place. The magnitude a(r) of a rank is
// constant, so its scale, the root of the mean square, is a(r); M(c) is constant over a chunk, so
// the scale of the chunk is |M(c)| and decoding gives s(i) M(c). Both hold in fp32 exactly: the sum
// of squares is taken in double, whose rounding is far below half a bit of the fp32 root.
// w(r, c) = +-1 are Walsh functions: two ranks differ in the chunk of the lowest bit in which their
// numbers differ, so a chunk that came from or went to the wrong rank changes an average. a(0) is
// the only odd magnitude, so no sum over the ranks is zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace lambcast::validate {

constexpr bool compressed_sign(std::uint64_t i) {
  return std::popcount((i * 0x9E3779B97F4A7C15ULL) >> 32) % 2 == 0;
}

// Returns w(r, c) a(r).
constexpr float compressed_part(int rank, int chunk) {
  const int magnitude = rank == 0 ? 1 : 2 * (rank + 1);
  const bool minus = std::popcount(static_cast<unsigned>(rank & chunk)) % 2 == 1;
  return static_cast<float>(minus ? -magnitude : magnitude);
}

// Returns M(c) of every chunk, summed in the order and precision of the kernels: in groups of four.
inline std::vector<float> compressed_means(int ranks) {
  const float share = static_cast<float>(1.0 / ranks);
  std::vector<float> means;
  for (int chunk = 0; chunk < ranks; ++chunk) {
    float mean = 0;
    for (int first = 0; first < ranks; first += 4) {
      float of_four = 0;
      for (int rank = first; rank < std::min(first + 4, ranks); ++rank) {
        of_four += compressed_part(rank, chunk) * share;
      }
      mean += of_four;
    }
    means.push_back(mean);
  }
  return means;
}

}  // namespace lambcast::validate
