// CPU reference of 8-bit optimizer states: blocks of elements share the largest magnitude, and each
// element is the nearest of 256 values between -1 and 1 (or 0 and 1) that are dense near zero: 0,
// 1, and in seven decades 1, 2, 4, ... 64 values in the middle of equal steps.
//
// Sources: 8-bit optimizers via block-wise quantization, arXiv:2110.02861; bitsandbytes
// functional.py (create_dynamic_map), optim/optimizer.py (min_8bit_size, percentile_clipping).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lambcast::reference {

enum class Sign { both, positive };
const std::array<float, 256>& dynamic_map(Sign sign);  // in increasing order

// Returns the index in `map` of the value nearest to x: the lower one of two equally near values, 0
// for NaN.
std::uint8_t nearest(const std::array<float, 256>& map, float x);

struct EightBitState {
  std::vector<std::uint8_t> codes;
  std::vector<float> largest;  // per block
  std::size_t block = 256;
};

void store(std::span<const float> x, EightBitState& state, Sign sign);
void load(const EightBitState& state, Sign sign, std::span<float> x);

// Clips a gradient whose norm is above a percentile of the last hundred norms: returns the factor,
// and stores the norm. In the first hundred steps missing norms count as 0, as in bitsandbytes.
struct PercentileClipping {
  int percentile = 100;  // 100: off
  std::array<double, 100> squares = {};
};
double clip(PercentileClipping& clipping, double norm, int step);

}  // namespace lambcast::reference
