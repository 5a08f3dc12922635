// IEEE binary16 as 16 raw bits, for the fp16 gradients and the fp16 copy of the weights.
#pragma once

#include <cstdint>

namespace lambcast::reference {

// Rounds to nearest, ties to even; overflows to infinity as __float2half_rn does.
std::uint16_t to_half(float value);
float from_half(std::uint16_t bits);

}  // namespace lambcast::reference
