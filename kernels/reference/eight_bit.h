// CPU reference of 8-bit optimizer states: blocks of elements share the largest magnitude, each
// element is the nearest of 256 values between -1 and 1 (or 0 and 1) that lie dense near zero:
// seven decades, 1, 2, 4, ... 64 values in the middle of equal steps of each, 0 and 1.
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
const std::array<float, 256>& dynamic_map(Sign sign);  // in rising order

// The place in `map` of the value nearest to x: of two as near the lower one, 0 for no number.
std::uint8_t nearest(const std::array<float, 256>& map, float x);

struct EightBitState {
  std::vector<std::uint8_t> codes;
  std::vector<float> largest;  // per block
  std::size_t block = 256;
};

void store(std::span<const float> x, EightBitState& state, Sign sign);
void load(const EightBitState& state, Sign sign, std::span<float> x);

// Clips a gradient whose norm is above the percentile of the last hundred: returns the factor, and
// notes the norm. Before a hundred steps those not yet seen count as 0, as in bitsandbytes.
struct PercentileClipping {
  int percentile = 100;  // 100: off
  std::array<double, 100> squares = {};
};
double clip(PercentileClipping& clipping, double norm, int step);

}  // namespace lambcast::reference
