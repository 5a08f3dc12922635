// PowerSGD: the matrices of a buffer are sent as two thin factors, and the elements between them
// uncompressed. The remainder of the approximation is the error feedback. With a warm start each
// call makes one step of subspace iteration from the factors of the last call. Without it Q gets
// new random values, and a call makes several steps. Source: PowerSGD, arXiv:1905.13727;
// reference/low_rank.h.
#pragma once

#include <cstdint>

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/reference/low_rank.h"

namespace lambcast::emulated {

struct PowerSgd {
  struct Matrix {
    std::size_t begin = 0;  // in the buffer
    reference::MatrixShape shape;
  };
  std::vector<Matrix> matrices;  // in order
  int rank = 4;
  bool warm_start = true;  // else Q gets new random values in every call
  int iterations = 1;      // iterations over both factors in each call
  std::uint64_t seed = 1;
  std::vector<std::vector<float>> owed = {};  // [rank][N]
  std::vector<std::vector<float>> q = {};     // [matrix], the same on all ranks
  std::uint64_t calls = 0;
};
Wire average(PowerSgd& state, Buffers buffers);

}  // namespace lambcast::emulated
